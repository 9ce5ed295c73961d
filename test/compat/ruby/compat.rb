# frozen_string_literal: true

# Shared helpers of the scenarios. The URL of the server, the token of root and
# other values are in the environment. A scenario prints what it did; a failed check
# ends it.

require 'gitlab'
require 'time'

$stdout.sync = true # what was done comes before what failed

URL = ENV.fetch('COMPAT_URL')
ROOT = ENV.fetch('COMPAT_TOKEN')
PASSWORD = ENV.fetch('COMPAT_PASSWORD')
HIDDEN = ENV.fetch('COMPAT_HIDDEN') # the value of variables; no log may hold it
KEYS = ENV.fetch('COMPAT_KEYS').lines(chomp: true) # public SSH keys
PICTURE = [ENV.fetch('COMPAT_PICTURE')].pack('H*')

# Returns a client that uses the token as a personal access token.
def client(token = ROOT, **options)
  Gitlab.client(endpoint: "#{URL}/api/v4", private_token: token, **options)
end

# Creates a confirmed user.
def new_user(root, username, more = {})
  root.create_user("#{username}@example.org", PASSWORD, username, { name: "Name of #{username}", skip_confirmation: true, **more })
end

# Creates a personal access token of the user with the generic methods of the gem,
# because it has no specific one.
def new_token(root, user, *scopes)
  root.post("/users/#{user.id}/personal_access_tokens", body: { name: scopes.join(' '), scopes: scopes })
end

def assert(what, message = 'that is not so')
  raise message unless what
end

def same(got, want)
  raise "got #{got.inspect}, want #{want.inspect}" unless got == want
end

# Checks that the block raises exactly this error of the gem with this message.
def refused(error, message)
  got = nil
  begin
    yield
  rescue Gitlab::Error::Error => e
    got = e
  end
  raise "the call went well, want #{error}" if got.nil?

  same got.class, error
  assert got.message.include?("message: #{message}. Request URI"), "got #{got.message.inspect}, want #{message.inspect}"
end

def recent?(text)
  (Time.now - Time.iso8601(text)).between?(-1, 300)
end

def day(ahead)
  (Time.now.utc + (ahead * 86_400)).strftime('%Y-%m-%d')
end

def did(text)
  puts "did: #{text}"
end
