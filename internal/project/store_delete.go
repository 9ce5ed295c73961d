package project

// soleOwner is a condition on groups n: those that one user owns and no one
// else, neither there nor above.
const soleOwner = `n.kind = 'group' AND n.deleted_at IS NULL
	AND EXISTS (SELECT 1 FROM members m WHERE m.namespace_id = n.id AND m.user_id = ? AND m.access_level = 50 AND ` + activeMember + `)
	AND NOT EXISTS (SELECT 1 FROM namespace_tree t JOIN members m ON m.namespace_id = t.ancestor_id JOIN users u ON u.id = m.user_id
		WHERE t.descendant_id = n.id AND m.user_id <> ? AND m.access_level = 50 AND u.kind = 'human' AND u.deleted_at IS NULL AND ` + activeMember + `)`
