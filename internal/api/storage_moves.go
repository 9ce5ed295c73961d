package api

import (
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo/storagemove"
	"svc/internal/snippet"
)

// storageMoveRoutes adds the routes of the storage moves of projects, snippets and
// groups.
func (a *API) storageMoveRoutes() {
	a.tag("Storage moves")
	for _, k := range []struct {
		kind        storagemove.Kind
		all, within string // paths
		tier        Tier
	}{
		{storagemove.Project, "/project_repository_storage_moves", "/projects/{id}/repository_storage_moves", Free},
		{storagemove.Snippet, "/snippet_repository_storage_moves", "/snippets/{id}/repository_storage_moves", Free},
		{storagemove.Group, "/group_repository_storage_moves", "/groups/{id}/repository_storage_moves", Premium},
	} {
		m := storageMoveEndpoints{a, k.kind}
		handle(a, "GET "+k.all, readAPI, m.list, tier(k.tier), onlySelfManaged, summary("List all "+string(k.kind)+" repository storage moves"))
		handle(a, "POST "+k.all, writeAPI, m.moveAll, tier(k.tier), onlySelfManaged, summary("Schedule repository storage moves for all "+string(k.kind)+"s on a storage"))
		handle(a, "GET "+k.all+"/{repository_storage_move_id}", readAPI, m.get, tier(k.tier), onlySelfManaged, summary("Get a "+string(k.kind)+" repository storage move"))
		handle(a, "GET "+k.within, readAPI, m.listOf, tier(k.tier), onlySelfManaged, summary("List repository storage moves for a "+string(k.kind)))
		handle(a, "POST "+k.within, writeAPI, m.move, tier(k.tier), onlySelfManaged, summary("Schedule a repository storage move for a "+string(k.kind)))
		handle(a, "GET "+k.within+"/{repository_storage_move_id}", readAPI, m.getOf, tier(k.tier), onlySelfManaged, summary("Get a repository storage move for a "+string(k.kind)))
	}
}

// storageMoveEndpoints serves the storage moves of one kind.
type storageMoveEndpoints struct {
	api  *API
	kind storagemove.Kind
}

type storageMoveJSON struct {
	ID          int64   `json:"id"`
	CreatedAt   stamp   `json:"created_at"`
	State       string  `json:"state"`
	Source      string  `json:"source_storage_name"`
	Destination string  `json:"destination_storage_name"`
	Error       *string `json:"error_message"`
	// Exactly one of the following is set.
	Project *projectNameJSON `json:"project,omitempty"`
	Snippet *snippetJSON     `json:"snippet,omitempty"`
	Group   *movedGroupJSON  `json:"group,omitempty"`
}

type movedGroupJSON struct {
	ID     int64  `json:"id"`
	WebURL string `json:"web_url"`
	Name   string `json:"name"`
}

// present returns the representations of moves, with their project, snippet or
// group.
func (m storageMoveEndpoints) present(c *call, list ...*storagemove.Move) ([]storageMoveJSON, error) {
	var ids []int64
	for _, mv := range list {
		ids = append(ids, mv.OwnerID)
	}
	projects, snippets := map[int64]*project.Project{}, map[int64]*snippet.Snippet{}
	var err error
	switch m.kind {
	case storagemove.Project:
		var found []*project.Project
		found, err = m.api.Projects.Among(c, c.actor, ids)
		for _, p := range found {
			projects[p.ID] = p
		}
	case storagemove.Snippet:
		snippets, err = m.api.Snippets.ByID(c, c.actor, ids)
	}
	if err != nil {
		return nil, err
	}
	results := []storageMoveJSON{}
	for _, mv := range list {
		out := storageMoveJSON{
			ID: mv.ID, CreatedAt: toStamp(mv.CreatedAt), State: string(mv.State), Source: mv.Source, Destination: mv.Destination, Error: textOrNull(mv.Error),
		}
		if p := projects[mv.OwnerID]; p != nil {
			name := toProjectName(p)
			out.Project = &name
		}
		if mv.Kind == storagemove.Group {
			out.Group = &movedGroupJSON{mv.OwnerID, c.site.URL + "/groups/" + mv.Name, mv.Title}
		}
		if s := snippets[mv.OwnerID]; s != nil {
			one := m.api.toSnippet(c, s)
			out.Snippet = &one
		}
		results = append(results, out)
	}
	return results, nil
}

func (m storageMoveEndpoints) presentOne(c *call, mv *storagemove.Move, err error) (storageMoveJSON, error) {
	if err != nil {
		return storageMoveJSON{}, err
	}
	list, err := m.present(c, mv)
	if err != nil {
		return storageMoveJSON{}, err
	}
	return list[0], nil
}

func (m storageMoveEndpoints) presentPage(c *call, p pageParams, list db.Page[*storagemove.Move], err error) (page[storageMoveJSON], error) {
	if err != nil {
		return page[storageMoveJSON]{}, err
	}
	results, err := m.present(c, list.Items...)
	if err != nil {
		return page[storageMoveJSON]{}, err
	}
	at := -1
	return offsetPage(p, list, func(*storagemove.Move) storageMoveJSON { at++; return results[at] }), nil
}

// list: https://docs.gitlab.com/api/project_repository_storage_moves/#retrieve-all-project-repository-storage-moves
func (m storageMoveEndpoints) list(c *call, p pageParams) (page[storageMoveJSON], error) {
	list, err := m.api.Moves.List(c, c.actor, storagemove.Filter{Kind: m.kind}, p.paging())
	return m.presentPage(c, p, list, err)
}

type moveAllParams struct {
	Source      string `param:"source_storage_name,required" doc:"Storage to move all repositories from."`
	Destination string `param:"destination_storage_name" doc:"Destination storage. Default is the storage with the most free space, for each repository."`
}

// moveAll: https://docs.gitlab.com/api/project_repository_storage_moves/#schedule-repository-storage-moves-for-all-projects-on-a-storage-shard
func (m storageMoveEndpoints) moveAll(c *call, p moveAllParams) (accepted, error) {
	return accepted{}, m.api.Moves.MoveAll(c, c.actor, m.kind, p.Source, p.Destination)
}

type storageMoveParams struct {
	Move int64 `param:"repository_storage_move_id"`
}

// get: https://docs.gitlab.com/api/project_repository_storage_moves/#get-a-single-project-repository-storage-move
func (m storageMoveEndpoints) get(c *call, p storageMoveParams) (storageMoveJSON, error) {
	mv, err := m.api.Moves.Get(c, c.actor, storagemove.Filter{Kind: m.kind, ID: p.Move})
	return m.presentOne(c, mv, err)
}

type moveOwnerParams struct {
	Owner project.Ref `param:"id" doc:"ID; for projects and groups also the full path."`
}

type moveOwnerListParams struct {
	moveOwnerParams
	pageParams
}

// listOf: https://docs.gitlab.com/api/project_repository_storage_moves/#retrieve-all-repository-storage-moves-for-a-project
func (m storageMoveEndpoints) listOf(c *call, p moveOwnerListParams) (page[storageMoveJSON], error) {
	id, err := m.owner(c, p.Owner)
	if err != nil {
		return page[storageMoveJSON]{}, err
	}
	list, err := m.api.Moves.List(c, c.actor, storagemove.Filter{Kind: m.kind, OwnerID: id}, p.paging())
	return m.presentPage(c, p.pageParams, list, err)
}

// owner returns the ID of the project, group or snippet that is moved. NotFound if
// the actor has no access to it.
func (m storageMoveEndpoints) owner(c *call, ref project.Ref) (int64, error) {
	switch m.kind {
	case storagemove.Project:
		p, err := m.api.Projects.Require(c, c.actor, ref, project.NoAccess)
		if err != nil {
			return 0, err
		}
		return p.ID, nil
	case storagemove.Group:
		g, err := m.api.Projects.RequireGroup(c, c.actor, ref, project.NoAccess)
		if err != nil {
			return 0, err
		}
		return g.ID, nil
	}
	s, err := m.api.Snippets.Named(c, c.actor, string(ref))
	if err != nil {
		return 0, err
	}
	return s.ID, nil
}

type moveParams struct {
	moveOwnerParams
	Destination string `param:"destination_storage_name" doc:"Destination storage. Default is the storage with the most free space."`
}

// move: https://docs.gitlab.com/api/project_repository_storage_moves/#schedule-a-repository-storage-move-for-a-project
func (m storageMoveEndpoints) move(c *call, p moveParams) (storageMoveJSON, error) {
	id, err := m.owner(c, p.Owner)
	if err != nil {
		return storageMoveJSON{}, err
	}
	mv, err := m.api.Moves.Move(c, c.actor, m.kind, id, p.Destination)
	return m.presentOne(c, mv, err)
}

type moveOfOwnerParams struct {
	moveOwnerParams
	storageMoveParams
}

// getOf: https://docs.gitlab.com/api/project_repository_storage_moves/#get-a-single-repository-storage-move-for-a-project
func (m storageMoveEndpoints) getOf(c *call, p moveOfOwnerParams) (storageMoveJSON, error) {
	id, err := m.owner(c, p.Owner)
	if err != nil {
		return storageMoveJSON{}, err
	}
	mv, err := m.api.Moves.Get(c, c.actor, storagemove.Filter{Kind: m.kind, OwnerID: id, ID: p.Move})
	return m.presentOne(c, mv, err)
}
