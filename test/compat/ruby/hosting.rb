# frozen_string_literal: true

# The users of the scenarios about groups, projects and repositories.

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

# Creates a project as Ada whose default branch, main, has a README.
def new_project(path, more = {})
  ada.create_project(path, { initialize_with_readme: true, **more })
end

# Waits for background jobs of the server.
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
