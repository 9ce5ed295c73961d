# frozen_string_literal: true

# The people of the scenarios about groups, projects and repositories.

require_relative 'compat'

def root
  @root ||= client
end

def ada_user
  @ada_user ||= new_user(root, 'ada')
end

def bob_user
  @bob_user ||= new_user(root, 'bob')
end

def ada
  @ada ||= client(new_token(root, ada_user, 'api').token)
end

def bob
  @bob ||= client(new_token(root, bob_user, 'api').token)
end

# A project of Ada's whose default branch, main, has a README.
def new_project(path, more = {})
  ada.create_project(path, { initialize_with_readme: true, **more })
end

# Waits for what the server does in the background.
def eventually(what)
  ending = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
  until yield
    raise "after 30 s it is still not so: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > ending

    sleep 0.05
  end
end

def paths(projects)
  projects.map(&:path_with_namespace)
end
