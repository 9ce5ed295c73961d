# frozen_string_literal: true

# Users with the gitlab gem: create, read, change, list, states, delete.

require_relative 'compat'
require 'net/http'
require 'tempfile'

root = client

me = root.user
same [me.id, me.username, me.is_admin, me.web_url], [1, 'root', true, "#{URL}/root"]
did 'read the current user'

# The gem sends forms.
ada = root.create_user('ada@example.org', PASSWORD, 'ada', {
  name: 'Ada L. ✓', skip_confirmation: true, bio: 'counts & more', location: 'London', organization: 'Engines',
  skype: 'ada.s', linkedin: 'ada-l', twitter: '@ada', website_url: 'https://ada.example.org', projects_limit: 7,
  can_create_group: false, external: true, private_profile: true, public_email: 'ada@example.org', theme_id: 3, note: 'a=b',
  provider: 'ldapmain', extern_uid: 'uid=ada'
})
want = {
  'username' => 'ada', 'name' => 'Ada L. ✓', 'email' => 'ada@example.org', 'state' => 'active', 'is_admin' => false,
  'bio' => 'counts & more', 'location' => 'London', 'organization' => 'Engines', 'skype' => 'ada.s', 'linkedin' => 'ada-l',
  'twitter' => '@ada', 'website_url' => 'https://ada.example.org', 'projects_limit' => 7, 'can_create_group' => false,
  'external' => true, 'private_profile' => true, 'public_email' => 'ada@example.org', 'theme_id' => 3, 'note' => 'a=b',
  'identities' => [{ 'provider' => 'ldapmain', 'extern_uid' => 'uid=ada', 'saml_provider_id' => nil }], 'web_url' => "#{URL}/ada"
}
[ada, root.user(ada.id)].each do |user|
  same user.to_h.slice(*want.keys), want
  assert recent?(user.created_at) && recent?(user.confirmed_at), 'times'
  same user.created_by.username, 'root'
end
did 'created and read a user with every attribute'

ada = root.edit_user(ada.id, { name: 'Countess', bio: '', admin: true, username: 'ada.l' })
same [ada.name, ada.bio, ada.is_admin, ada.username, ada.location], ['Countess', '', true, 'ada.l', 'London']
ada = root.edit_user(ada.id, { admin: false })
same ada.is_admin, false
did 'changed a user'

Tempfile.create(['picture', '.png'], binmode: true) do |file|
  file.write(PICTURE)
  file.rewind
  ada = root.edit_user(ada.id, { avatar: file, bio: 'with a picture' })
end
same ada.bio, 'with a picture'
same Net::HTTP.get(URI(ada.avatar_url)), PICTURE
same root.avatar(email: 'ada@example.org').avatar_url, ada.avatar_url
did 'uploaded an avatar'

refused(Gitlab::Error::Conflict, 'Email has already been taken') { root.create_user('ADA@example.org', PASSWORD, 'other') }
refused(Gitlab::Error::Conflict, 'Username has already been taken') { root.create_user('other@example.org', PASSWORD, 'Ada.L') }
refused(Gitlab::Error::BadRequest, "'email' is invalid, 'password' is too short (minimum is 8 characters)") do
  root.create_user('nowhere', 'short', 'other')
end
refused(Gitlab::Error::BadRequest, 'projects_limit is invalid') { root.edit_user(ada.id, { projects_limit: 'many' }) }
refused(Gitlab::Error::NotFound, '404 User Not Found') { root.user(987_654) }
refused(Gitlab::Error::NotFound, '404 User Not Found') { root.edit_user(ada.id, { username: 'root' }) }
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { client('svcpat-no-such-token').user }
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { client('short').user }
did 'was refused what is wrong'

%w[bob cleo dan eva].each { |name| new_user(root, name) }
names = %w[root ghost ada.l bob cleo dan eva]
first = root.users(per_page: 3, order_by: 'id', sort: 'asc')
same first.map(&:username), names[0, 3]
assert first.has_next_page? && first.has_last_page? && !first.has_prev_page?, 'links of the first page'
same first.next_page.map(&:username), names[3, 3]
same first.last_page.map(&:username), names[6, 1]
same first.last_page.prev_page.map(&:username), names[3, 3]
same first.auto_paginate.map(&:username), names
same root.users(per_page: 2).paginate_with_limit(5).map(&:username), names.reverse[0, 5]
keyset = root.users(per_page: 2, pagination: 'keyset', order_by: 'id', sort: 'desc')
same keyset.auto_paginate.map(&:username), names.reverse
did 'listed users by offset and keyset'

same root.user_search('cle').map(&:username), ['cleo']
same root.users(username: 'DAN').map(&:username), ['dan']
same root.users(external: true).map(&:username), ['ada.l']
%w[cleo dan eva].each { |name| root.edit_user(root.users(username: name).first.id, { name: 'Name, "a"; <b>&%' }) }
same root.users(search: ', "a"; <b>&%', per_page: 2, sort: 'asc').auto_paginate.map(&:username), %w[cleo dan eva]
same root.users(active: true, exclude_internal: true, admins: true).map(&:username), ['root']
refused(Gitlab::Error::BadRequest, 'order_by does not have a valid value') { root.users(order_by: 'age') }
did 'listed users by filters'

bob = root.users(username: 'bob').first
own = client(new_token(root, bob, 'api').token)
same own.user.username, 'bob'
same root.block_user(bob.id), true
same root.user(bob.id).state, 'blocked'
same root.users(blocked: true).map(&:username), ['bob']
refused(Gitlab::Error::Forbidden, '403 Forbidden - Your account has been blocked.') { own.user }
refused(Gitlab::Error::Forbidden, '403 Forbidden - A blocked user cannot be deactivated by the API') { root.post("/users/#{bob.id}/deactivate") }
same root.unblock_user(bob.id), true
same own.user.state, 'active'
same root.post("/users/#{bob.id}/ban"), true
same root.user(bob.id).state, 'banned'
same root.post("/users/#{bob.id}/unban"), true
refused(Gitlab::Error::Forbidden, '403 Forbidden') { own.block_user(1) }
did 'blocked, unblocked, banned and unbanned'

root.delete_user(bob.id)
refused(Gitlab::Error::NotFound, '404 User Not Found') { root.user(bob.id) }
refused(Gitlab::Error::NotFound, '404 User Not Found') { root.delete_user(bob.id) }
refused(Gitlab::Error::Unauthorized, '401 Unauthorized') { own.user }
same root.users(username: 'bob').to_a, []
did 'deleted a user'
