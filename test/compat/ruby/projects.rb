# frozen_string_literal: true

# Projects: create, list, change, move, fork, delete.

require_relative 'hosting'
require 'net/http'

p = ada.create_project('Analytical Engine', { description: 'counts', visibility: 'public', topics: %w[brass steam], initialize_with_readme: true, default_branch: 'trunk' })
same [p.path_with_namespace, p.default_branch, p.topics, p.description], ['ada/analytical-engine', 'trunk', %w[brass steam], 'counts']
same [p.web_url, p.http_url_to_repo], ["#{URL}/ada/analytical-engine", "#{URL}/ada/analytical-engine.git"]
same [p.namespace.kind, p.owner.username, p.permissions.project_access.access_level], ['user', 'ada', 50]
assert recent?(p.created_at), p.created_at
same ada.project(p.id).to_h, p.to_h
same ada.project('ada/analytical-engine').id, p.id
theirs = root.create_project('given', { user_id: bob_user.id })
same [theirs.path_with_namespace, theirs.owner.username], %w[bob/given bob]
refused(Gitlab::Error::BadRequest, "'path' has already been taken") { ada.create_project('Analytical Engine') }
refused(Gitlab::Error::NotFound, '404 Project Not Found') { ada.project('bob/given') }
did 'created and read projects'

p = ada.edit_project(p.id, { description: 'subtracts', topics: %w[iron], merge_method: 'ff' })
same [p.description, p.topics, p.merge_method], ['subtracts', %w[iron], 'ff']
ada.create_branch(p.id, 'next', 'trunk')
same ada.edit_project(p.id, { default_branch: 'next' }).default_branch, 'next'
p = ada.edit_project(p.id, { path: 'renamed' })
same p.path_with_namespace, 'ada/renamed'
same ada.project('ada/analytical-engine').path_with_namespace, 'ada/renamed' # by a redirect
same ada.branches('ada/analytical-engine').map(&:name), %w[next trunk]
File.open(File.join(Dir.home, 'picture.png'), 'wb+') do |file|
  file.write(PICTURE)
  file.rewind
  with = ada.edit_project(p.id, { avatar: file })
  same Net::HTTP.get(URI(with.avatar_url)), PICTURE
end
did 'changed and renamed a project'

same bob.star_project(p.id).star_count, 1
same paths(bob.user_starred_projects(bob_user.id)), ['ada/renamed']
same bob.post("/projects/#{p.id}/unstar").star_count, 0 # the gem knows an older way only
same ada.archive_project(p.id).archived, true
refused(Gitlab::Error::Forbidden, '403 Forbidden - The project is archived: nothing in it can be changed.') { ada.create_branch(p.id, 'late', 'next') }
same ada.unarchive_project(p.id).archived, false
did 'starred and archived a project'

g = ada.create_group('Shelf', 'shelf', { visibility: 'public' })
5.times { |n| ada.create_project("book #{n}", { namespace_id: g.id, visibility: 'public' }) }
names = (0..4).map { |n| "shelf/book-#{n}" }
by_id = { search: 'book', order_by: 'id', sort: 'asc', per_page: 2 }
first = ada.projects(by_id)
same [paths(first), first.has_next_page?, paths(first.last_page)], [names[0, 2], true, names[4, 1]]
same paths(first.auto_paginate), names
same paths(ada.projects({ pagination: 'keyset', **by_id }).auto_paginate), names
same paths(first.next_page), names[2, 2]
same paths(ada.project_search('book 3')), [names[3]]
same paths(ada.group_projects(g.id, { order_by: 'name', sort: 'desc' })), names.reverse
same paths(root.user_projects(ada_user.id)), ['ada/renamed']
did 'listed projects by offset and keyset'

fork = bob.create_fork(p.id, { path: 'copy', name: 'copy' })
same [fork.path_with_namespace, fork.forked_from_project.id], ['bob/copy', p.id]
eventually('the fork is made') { bob.project(fork.id).import_status == 'finished' }
same bob.branches(fork.id).map(&:name), %w[next trunk]
same paths(ada.project_forks(p.id)), ['bob/copy']
bob.remove_forked(fork.id)
same ada.project_forks(p.id).to_a, []
root.make_forked_from(fork.id, p.id)
same bob.project(fork.id).forked_from_project.id, p.id
did 'forked a project'

same ada.transfer_project(p.id, 'shelf').path_with_namespace, 'shelf/renamed'
root.transfer_project(p.id, 'ada')
guests = ada.create_group('Guests', 'guests')
ada.share_project_with_group(p.id, guests.id, 30)
same ada.project(p.id).shared_with_groups.map { |s| [s['group_id'], s['group_access_level']] }, [[guests.id, 30]]
ada.unshare_project_with_group(p.id, guests.id)
same ada.project(p.id).shared_with_groups.to_a, []
ada.create_file(p.id, 'main.go', 'next', "package main\n", 'code')
same ada.get("/projects/#{p.id}/languages").to_h, { 'Go' => 100.0 }
did 'transferred and shared a project'

refused(Gitlab::Error::Forbidden, '403 Forbidden') { bob.delete_project(p.id) }
same ada.delete_project(p.id).message, '202 Accepted'
same ada.project(p.id).path.end_with?("-deletion_scheduled-#{p.id}"), true
refused(Gitlab::Error::NotFound, '404 Project Not Found') { bob.project(p.id) }
did 'deleted a project'
