# frozen_string_literal: true

# Groups: create, list, change, move, delete; namespaces.

require_relative 'hosting'

g = ada.create_group('Engines', 'engines', { description: 'of brass', visibility: 'public' })
same [g.full_path, g.full_name, g.parent_id, g.visibility, g.web_url], ['engines', 'Engines', nil, 'public', "#{URL}/groups/engines"]
sub = ada.create_group('Small', 'small', { parent_id: g.id })
same [sub.full_path, sub.full_name, sub.parent_id], ['engines/small', 'Engines / Small', g.id]
same ada.group('engines/small').id, sub.id
same ada.group_subgroups(g.id).map(&:full_path), ['engines/small']
refused(Gitlab::Error::BadRequest, "'path' has already been taken") { ada.create_group('Again', 'engines') }
same ada.groups({ search: 'engines' }).map(&:full_path), ['engines']
same ada.group_search('small').map(&:full_path), ['engines/small']
same bob.groups({ owned: true }).to_a, []
same ada.groups({ top_level_only: true, order_by: 'path', sort: 'desc' }).map(&:full_path), %w[shelf guests engines]
keyset = root.groups({ pagination: 'keyset', order_by: 'name', per_page: 1 }).auto_paginate
same keyset.map(&:full_path), %w[engines guests shelf engines/small]
did 'created and listed groups'

p = ada.create_project('loom', { namespace_id: sub.id })
g = ada.edit_group(g.id, { name: 'Machines', path: 'machines' })
same [g.full_path, ada.project(p.id).path_with_namespace], %w[machines machines/small/loom]
same ada.project('engines/small/loom').id, p.id
same ada.post("/groups/#{sub.id}/transfer").full_path, 'small'
same ada.post("/groups/#{sub.id}/transfer", body: { group_id: g.id }).full_path, 'machines/small'
refused(Gitlab::Error::Forbidden, '403 Forbidden') { ada.transfer_project_to_group(g.id, p.id) }
root.transfer_project_to_group(g.id, p.id)
same ada.project(p.id).path_with_namespace, 'machines/loom'
same paths(ada.group_projects(g.id)), ['machines/loom']
did 'renamed and moved groups'

same ada.namespaces({ search: 'machines' }).map { |n| [n.kind, n.full_path] }, [%w[group machines], %w[group machines/small]]
same ada.get('/namespaces/ada').kind, 'user'
same ada.get("/groups/#{g.id}/audit_events").map(&:event_type).last, 'group_created'
did 'read namespaces and audit events'

refused(Gitlab::Error::Forbidden, '403 Forbidden') { bob.delete_group(g.id) }
same ada.delete_group(g.id).message, '202 Accepted'
refused(Gitlab::Error::NotFound, '404 Group Not Found') { ada.group(sub.id) }
refused(Gitlab::Error::NotFound, '404 Project Not Found') { ada.project(p.id) }
did 'deleted a group with all below'
