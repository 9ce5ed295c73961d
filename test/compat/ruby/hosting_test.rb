# frozen_string_literal: true

# Groups, projects and repositories, with the gitlab gem. Each part runs
# when it is loaded; all share one server.

require_relative 'projects'
require_relative 'groups'
require_relative 'members'
require_relative 'repositories'
