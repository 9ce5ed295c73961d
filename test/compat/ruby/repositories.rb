# frozen_string_literal: true

# Repositories: files, trees, archives, branches, tags, commits.

require_relative 'hosting'
require 'zlib'
require 'rubygems/package'

p = new_project('papers')
path = 'docs/a b/ünï.md'
made = ada.create_file(p.id, path, 'main', "one\ntwo\n", 'write', { author_name: 'Charles', author_email: 'charles@example.org' })
same [made.file_path, made.branch], [path, 'main']
file = ada.get_file(p.id, path, 'main')
same [file.file_name, file.size, file.encoding, file.content.unpack1('m')], ['ünï.md', 8, 'base64', "one\ntwo\n"]
first = file.last_commit_id
ada.edit_file(p.id, path, 'main', "one\n2\n", 'count')
same ada.file_contents(p.id, path, 'main'), "one\n2\n"
same ada.get_file_blame(p.id, path, 'main').map { |b| [b.commit.author_name, b.lines] }, [['Charles', ['one']], ['Name of ada', ['2']]]
ada.create_file(p.id, 'gone.txt', 'main', 'x', 'add')
ada.remove_file(p.id, 'gone.txt', 'main', 'drop')
refused(Gitlab::Error::NotFound, '404 File Not Found') { ada.get_file(p.id, 'gone.txt', 'main') }
did 'wrote, read and deleted files'

same ada.tree(p.id).map { |n| [n.type, n.path] }, [%w[tree docs], %w[blob README.md]]
same ada.tree(p.id, { recursive: true, pagination: 'keyset', per_page: 3 }).auto_paginate.map(&:path), ['README.md', 'docs', 'docs/a b', path]
refused(Gitlab::Error::NotFound, '404 Tree Not Found') { ada.tree(p.id, { ref: 'nowhere' }) }
archive = ada.repo_archive(p.id, 'main')
head = ada.branch(p.id, 'main').commit.id
same archive.filename, "papers-main-#{head}.tar.gz"
files = Gem::Package::TarReader.new(Zlib::GzipReader.new(StringIO.new(archive.read))).select(&:file?).map { |e| e.full_name.force_encoding('UTF-8') }
same files.sort, ["papers-main-#{head}/README.md", "papers-main-#{head}/#{path}"]
did 'read trees and an archive'

made = ada.create_branch(p.id, 'side', first)
same [made.name, made.commit.id, made.protected, made.default], ['side', first, false, false]
same ada.branches(p.id, { search: 'si' }).map(&:name), ['side']
commit = ada.create_commit(p.id, 'side', 'on side', [
                             { action: 'create', file_path: 'side.txt', content: "s\n" },
                             { action: 'move', file_path: 'READ.md', previous_path: 'README.md' }
                           ], { author_name: 'Charles', author_email: 'charles@example.org' })
same [commit.title, commit.author_name, commit.parent_ids, commit.stats.total], ['on side', 'Charles', [first], 1]
same ada.commit(p.id, 'side').id, commit.id
same ada.commit_diff(p.id, commit.id).map { |d| [d.old_path, d.new_path, d.renamed_file] }.sort, [['README.md', 'READ.md', true], ['side.txt', 'side.txt', false]]
same ada.commits(p.id, { ref_name: 'side', per_page: 1 }).auto_paginate.map(&:title), ['on side', 'write', 'Initial commit']
same ada.commits(p.id, { ref_name: 'side', author: 'Charles', path: 'side.txt' }).map(&:title), ['on side']
same ada.commit_refs(p.id, commit.id, { type: 'branch' }).map(&:name), ['side']
refused(Gitlab::Error::BadRequest, 'Branch already exists') { ada.create_branch(p.id, 'main', 'side') }
did 'made branches and commits'

compared = ada.compare(p.id, 'main', 'side')
same [compared.commits.map { |c| c['title'] }, compared.diffs.map { |d| d['new_path'] }.sort], [['on side'], %w[READ.md side.txt]]
same ada.merge_base(p.id, %w[main side]).id, first
same ada.contributors(p.id, { order_by: 'name' }).map { |c| [c.name, c.commits] }, [['Charles', 1], ['Name of ada', 4]]
picked = ada.cherry_pick_commit(p.id, commit.id, 'main')
same [picked.title, picked.parent_ids], ['on side', [head]]
same ada.revert_commit(p.id, picked.id, 'main').title, 'Revert "on side"'
same ada.tree(p.id).map(&:path), ['docs', 'README.md']
did 'compared, picked and reverted'

same ada.create_commit_comment(p.id, commit.id, 'good', { path: 'side.txt', line: 1, line_type: 'new' }).note, 'good'
same ada.commit_comments(p.id, commit.id).map { |c| [c.note, c.path, c.author.username] }, [%w[good side.txt ada]]
same ada.update_commit_status(p.id, commit.id, 'success', { name: 'lint', ref: 'side' }).status, 'success'
same ada.commit_status(p.id, commit.id).map { |s| [s.name, s.status, s.ref] }, [%w[lint success side]]
did 'commented on a commit and set its status'

light = ada.create_tag(p.id, 'v1.0.0', 'main')
same [light.message, light.target], [nil, ada.branch(p.id, 'main').commit.id]
noted = ada.create_tag(p.id, 'v1.1.0', 'side', 'the second')
same [noted.message, noted.commit.id], ['the second', commit.id]
same ada.tags(p.id, { order_by: 'name', sort: 'asc' }).map(&:name), %w[v1.0.0 v1.1.0]
same ada.tag(p.id, 'v1.1.0').message, 'the second'
ada.delete_tag(p.id, 'v1.1.0')
same ada.tags(p.id).map(&:name), ['v1.0.0']
ada.create_file(p.id, 'b.txt', 'main', 'b', "Add letters\n\nChangelog: added")
notes = ada.get("/projects/#{p.id}/repository/changelog", query: { version: '1.1.0', date: '2030-01-02' }).notes
assert notes.start_with?("## 1.1.0 (2030-01-02)\n\n### added (1 change)\n\n- [Add letters]("), notes
ada.post("/projects/#{p.id}/repository/changelog", body: { version: '1.1.0', date: '2030-01-02' })
same ada.file_contents(p.id, 'CHANGELOG.md', 'main'), notes.chomp
ada.delete_branch(p.id, 'side')
refused(Gitlab::Error::NotFound, '404 Branch Not Found') { ada.branch(p.id, 'side') }
did 'made tags and a changelog'
