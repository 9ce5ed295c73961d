# frozen_string_literal: true

# Users and the instance, with the gitlab gem: emails, keys, tokens, sudo,
# activities, settings. For variables, audit events, follows and status, the gem
# has only generic methods.

require_relative 'compat'

root = client
ada = new_user(root, 'ada')
own = client(new_token(root, ada, 'api').token)

assert root.version.version.match?(/\A(17\.1[1-9]|1[89]|[2-9]\d)(\.\d+)+\z/), root.version.version
same own.get('/metadata').version, root.version.version
did 'read the version'

mine = own.add_email('mine@example.org')
same [mine.email, mine.confirmed_at], ['mine@example.org', nil]
given = root.add_email('given@example.org', ada.id, true)
assert recent?(given.confirmed_at), 'not confirmed'
same own.emails.map(&:email), %w[mine@example.org given@example.org]
same root.emails(ada.id).map(&:id), [mine.id, given.id]
same own.email(given.id).email, 'given@example.org'
refused(Gitlab::Error::BadRequest, "'email' has already been taken") { own.add_email('root@localhost') }
refused(Gitlab::Error::Forbidden, '403 Forbidden') { own.emails(1) }
own.delete_email(mine.id)
root.delete_email(given.id, ada.id)
same own.emails.to_a, []
did 'added, listed and deleted emails'

first = own.create_ssh_key('laptop', "#{KEYS[0]} ada@laptop")
same [first.title, first.key], ['laptop', "#{KEYS[0]} ada@laptop"]
second = root.create_ssh_key('given', KEYS[1], { user_id: ada.id })
same own.ssh_keys.map(&:id), [first.id, second.id]
same root.ssh_keys({ user_id: ada.id }).map(&:title), %w[laptop given]
same own.ssh_key(second.id).key, KEYS[1]
same root.key(first.id).user.username, 'ada'
refused(Gitlab::Error::BadRequest, "'fingerprint_sha256' has already been taken") { root.create_ssh_key('stolen', KEYS[0]) }
own.delete_ssh_key(first.id)
root.delete_ssh_key(second.id, { user_id: ada.id })
refused(Gitlab::Error::NotFound, '404 Key Not Found') { own.ssh_key(first.id) }
did 'added, listed and deleted SSH keys'

token = root.post("/users/#{ada.id}/personal_access_tokens", body: { name: 'deploy', scopes: %w[api read_user], expires_at: day(30) })
same [token.name, token.scopes, token.expires_at, token.active], ['deploy', %w[api read_user], day(30), true]
third = client(token.token)
same third.user.id, ada.id
same root.get('/personal_access_tokens', query: { user_id: ada.id, search: 'deploy' }).map(&:id), [token.id]
rotated = root.post("/personal_access_tokens/#{token.id}/rotate")
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { third.user }
third = client(rotated.token)
same third.user.id, ada.id
root.delete("/personal_access_tokens/#{rotated.id}")
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { third.user }
refused(Gitlab::Error::BadRequest, 'scopes does not have a valid value') { new_token(root, ada, 'everything') }
reads = client(new_token(root, ada, 'read_api').token)
same reads.user.username, 'ada'
refused(Gitlab::Error::Forbidden, 'The request requires higher privileges than provided by the access token.') { reads.add_email('more@example.org') }
did 'made, used, rotated and revoked tokens'

behind = root.post("/users/#{ada.id}/impersonation_tokens", body: { name: 'support', scopes: ['api'] })
as = client(behind.token)
same as.user.username, 'ada'
same root.get("/users/#{ada.id}/impersonation_tokens", query: { state: 'active' }).map(&:id), [behind.id]
root.delete("/users/#{ada.id}/impersonation_tokens/#{behind.id}")
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { as.user }
did 'made, used and revoked an impersonation token'

# The gem uses sudo for all clients until another client is created.
same client(ROOT, sudo: 'ADA').user.id, ada.id
refused(Gitlab::Error::Forbidden, '403 Forbidden') { client(ROOT, sudo: ada.id).application_settings }
refused(Gitlab::Error::NotFound, "404 User with ID or username 'nobody' Not Found") { client(ROOT, sudo: 'nobody').user }
root = client
same root.user.username, 'root'
did 'acted as another user'

bob = new_user(root, 'bob')
same own.post("/users/#{bob.id}/follow").username, 'bob'
same root.get("/users/#{bob.id}/followers").map(&:username), ['ada']
same own.post("/users/#{bob.id}/unfollow").username, 'bob'
same own.put('/user/status', body: { message: 'a break', emoji: 'coffee' }).message, 'a break'
same root.get("/users/#{ada.id}/status").emoji, 'coffee'
did 'followed, unfollowed and set a status'

seen = root.activities.to_h { |a| [a.username, a.last_activity_on] }
same seen, { 'root' => day(0), 'ada' => day(0) }
same root.activities(from: day(1)).to_a, []
did 'listed activities'

settings = root.application_settings
same [settings.max_personal_access_token_lifetime, settings.default_projects_limit], [365, 100_000]
settings = root.edit_application_settings({ default_projects_limit: 11, user_default_external: true })
same [settings.default_projects_limit, settings.user_default_external], [11, true]
cleo = new_user(root, 'cleo')
same [cleo.projects_limit, cleo.external], [11, true]
refused(Gitlab::Error::BadRequest, "'minimum_password_length' must be greater than or equal to 8") do
  root.edit_application_settings({ minimum_password_length: 4 })
end
did 'read and changed settings'

made = root.post('/admin/ci/variables', body: { key: 'DEPLOY_KEY', value: HIDDEN, masked: true, variable_type: 'file' })
same [made.key, made.value, made.masked, made.protected, made.variable_type], ['DEPLOY_KEY', HIDDEN, true, false, 'file']
same root.put('/admin/ci/variables/DEPLOY_KEY', body: { value: "#{HIDDEN}+2" }).value, "#{HIDDEN}+2"
same root.get('/admin/ci/variables').map(&:key), ['DEPLOY_KEY']
root.delete('/admin/ci/variables/DEPLOY_KEY')
refused(Gitlab::Error::NotFound, '404 InstanceVariable Not Found') { root.get('/admin/ci/variables/DEPLOY_KEY') }
did 'created, listed, changed and deleted a variable'

events = root.get('/audit_events', query: { per_page: 3 })
same events.map(&:event_type), %w[ci_instance_variable_deleted ci_instance_variable_updated ci_instance_variable_created]
same events.first.entity_type, 'Svc::Audit::InstanceScope'
all = events.auto_paginate
keyset = root.get('/audit_events', query: { per_page: 3, pagination: 'keyset', order_by: 'id', sort: 'desc' }).auto_paginate
same keyset.map(&:id), all.map(&:id)
same root.get("/audit_events/#{all.last.id}").event_type, 'user_created'
did 'listed audit events'
