# frozen_string_literal: true

# Permissions: members, requests, tokens, keys, protected refs, push rules.

require_relative 'hosting'

def roles(members)
  members.map { |m| [m.username, m.access_level] }
end

p = new_project('crew')
m = ada.add_team_member(p.id, bob_user.id, 20, { expires_at: day(30) })
same [m.username, m.access_level, m.expires_at], ['bob', 20, day(30)]
same roles(ada.team_members(p.id)), [['ada', 50], ['bob', 20]]
same roles(ada.team_members(p.id, { query: 'bo' })), [['bob', 20]]
m = ada.edit_team_member(p.id, bob_user.id, 40, { expires_at: '' })
same [m.access_level, m.expires_at], [40, nil]
same ada.team_member(p.id, bob_user.id).access_level, 40
refused(Gitlab::Error::Conflict, 'Member already exists') { ada.add_team_member(p.id, bob_user.id, 30) }
ada.remove_team_member(p.id, bob_user.id)
refused(Gitlab::Error::NotFound, '404 Not found') { ada.team_member(p.id, bob_user.id) }
g = ada.create_group('People', 'people')
ada.add_group_member(g.id, bob_user.id, 10)
same ada.edit_group_member(g.id, bob_user.id, 30).access_level, 30
same roles(ada.group_members(g.id)), [['ada', 50], ['bob', 30]]
inside = ada.create_project('inside', { namespace_id: g.id })
same roles(ada.all_members(inside.id)), [['ada', 50], ['bob', 30]]
same roles(ada.team_members(inside.id)), []
ada.remove_group_member(g.id, bob_user.id)
refused(Gitlab::Error::NotFound, '404 Not found') { ada.group_member(g.id, bob_user.id) }
did 'added, changed and removed members'

club = ada.create_group('Club', 'club', { visibility: 'public' })
same bob.request_group_access(club.id).username, 'bob'
same ada.group_access_requests(club.id).map(&:username), ['bob']
same ada.approve_group_access_request(club.id, bob_user.id, { access_level: 20 }).access_level, 20
house = new_project('open-house', { visibility: 'public' })
bob.request_project_access(house.id)
ada.deny_project_access_request(house.id, bob_user.id)
same ada.project_access_requests(house.id).to_a, []
did 'asked for access, approved and denied'

token = ada.post("/projects/#{p.id}/access_tokens", body: { name: 'robot', scopes: %w[api], access_level: 40, expires_at: day(30) })
robot = client(token.token)
same [robot.user.id, robot.user.bot], [token.user_id, true]
rotated = ada.post("/projects/#{p.id}/access_tokens/#{token.id}/rotate")
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { robot.user }
same client(rotated.token).project(p.id).permissions.project_access.access_level, 40
ada.delete("/projects/#{p.id}/access_tokens/#{rotated.id}")
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { client(rotated.token).user }
deploy = ada.post("/groups/#{g.id}/deploy_tokens", body: { name: 'puller', scopes: %w[read_repository] })
same ada.get("/groups/#{g.id}/deploy_tokens").map(&:id), [deploy.id]
ada.delete("/groups/#{g.id}/deploy_tokens/#{deploy.id}")
did 'made, used, rotated and revoked tokens'

key = ada.create_deploy_key(p.id, 'host', KEYS[0], { can_push: true })
same [key.title, key.can_push], ['host', true]
same ada.enable_deploy_key(house.id, key.id).can_push, false
same ada.edit_deploy_key(house.id, key.id, 'the host', { can_push: true }).can_push, true
same ada.deploy_keys(p.id).map { |k| [k.id, k.title] }, [[key.id, 'the host']]
ada.delete_deploy_key(p.id, key.id)
same ada.deploy_keys(p.id).to_a, []
same ada.deploy_key(house.id, key.id).title, 'the host'
did 'added, enabled and removed deploy keys'

same ada.protected_branches(p.id).map(&:name), ['main']
made = ada.protect_branch(p.id, 'release/*', { push_access_level: 40, merge_access_level: 30 })
same [made.name, made.push_access_levels.map { |l| l['access_level'] }, made.merge_access_levels.map { |l| l['access_level'] }], ['release/*', [40], [30]]
same ada.protected_branch(p.id, 'release/*').name, 'release/*'
ada.unprotect_branch(p.id, 'release/*')
same ada.protected_branches(p.id).map(&:name), ['main']
same ada.protect_repository_tag(p.id, 'v*', { create_access_level: 40 }).name, 'v*'
same ada.protected_tags(p.id).map(&:name), ['v*']
ada.unprotect_repository_tag(p.id, 'v*')
same ada.protected_tags(p.id).to_a, []
did 'protected branches and tags'

same ada.add_push_rule(p.id, { commit_message_regex: '^[a-z]+: ' }).commit_message_regex, '^[a-z]+: '
same ada.edit_push_rule(p.id, { deny_delete_tag: true }).deny_delete_tag, true
same ada.push_rule(p.id).commit_message_regex, '^[a-z]+: '
ada.delete_push_rule(p.id)
did 'set push rules'
