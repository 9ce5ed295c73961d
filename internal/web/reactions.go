package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"svc/internal/emoji"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

// reactionPages are the forms of reactions to an object and to comments on it.
func (w *Web) reactionPages(c commentable) {
	for _, at := range []string{c.at, c.at + "/notes/{note}"} {
		w.projectPage("GET "+at+"/react", signedIn, w.askReaction(c))
		w.projectPage("POST "+at+"/react", signedIn, w.react(c))
	}
}

// reactions are the reactions to an object, with the form to add one.
type reactions struct {
	Action string // URL of the form
	Part   string // name of the part of the page
	List   []plan.Reaction
	May    bool
}

// Text describes who reacted.
func (reactions) Text(r plan.Reaction) string {
	names := slices.Clone(r.Names)
	more := r.Count - len(names)
	if r.Own {
		names, more = append([]string{"You"}, names...), more-1
	}
	switch {
	case more > 0:
		names = append(names, plural(more, "other"))
		fallthrough
	case len(names) > 1:
		last := len(names) - 1
		return strings.Join(names[:last], ", ") + " and " + names[last] + " reacted with :" + r.Emoji.Name + ":"
	case len(names) == 1:
		return names[0] + " reacted with :" + r.Emoji.Name + ":"
	}
	return "React with :" + r.Emoji.Name + ":"
}

// newReactions are the reactions to an object at an address. Thumbs are always
// offered for an object itself.
func newReactions(action, part string, list []plan.Reaction, may, thumbs bool) reactions {
	r := reactions{Action: action, Part: part, List: list, May: may}
	if !thumbs || !may {
		return r
	}
	for i, name := range []string{plan.Upvote, plan.Downvote} {
		has := func(one plan.Reaction) bool { return one.Emoji.Name == name }
		if !slices.ContainsFunc(r.List, has) {
			r.List = slices.Insert(slices.Clone(r.List), min(i, len(r.List)), plan.Reaction{Emoji: emoji.Find(name)})
		}
	}
	return r
}

// reactPage is the page of all emoji, for browsers without scripts.
type reactPage struct {
	planHead
	Back   string
	Action string
	Groups []emojiGroup
}

type emojiGroup struct {
	Name string
	List []*emoji.Emoji
}

func (reactPage) view() string    { return "shared/react" }
func (p reactPage) title() string { return "Add reaction · " + p.Name() }

// emojiGroups are the emoji by group, as pickers show them.
var emojiGroups = sync.OnceValue(func() []emojiGroup {
	names := map[string]string{
		"smileys": "Smileys and emotion", "people": "Gestures and body", "nature": "Animals and nature", "food": "Food and drink", "travel": "Travel and places",
		"activities": "Activities", "objects": "Objects", "symbols": "Symbols", "flags": "Flags",
	}
	var list []emojiGroup
	at := map[string]int{}
	for _, e := range emoji.All() {
		if e.Toned() {
			continue
		}
		i, known := at[e.Group]
		if !known {
			i = len(list)
			at[e.Group], list = i, append(list, emojiGroup{Name: names[e.Group]})
		}
		list[i].List = append(list[i].List, e)
	}
	return list
})

// reactTo returns the object or comment that the URL names.
func (w *Web) reactTo(v *visit, ref project.Ref, c commentable) (on plan.Noteable, note int64, back string, err error) {
	if !strings.Contains(v.r.URL.Path, "/notes/") {
		if on, err = c.find(v, ref); err != nil {
			return on, 0, "", err
		}
		return on, 0, targetPath(on, c), nil
	}
	on, n, err := w.note(v, ref, c)
	if err != nil {
		return on, 0, "", err
	}
	return on, n.ID, fmt.Sprintf("%s#note_%d", targetPath(on, c), n.ID), nil
}

func (w *Web) askReaction(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, _, back, err := w.reactTo(v, ref, c)
		if err != nil {
			return err
		}
		if !on.CanComment(v.actor) {
			return errs.Forbidden("")
		}
		h, err := w.planHead(v, project.Place{Ref: project.RefTo(on.In.ID)}, c.part)
		if err != nil {
			return err
		}
		return v.show(reactPage{planHead: h, Back: back, Action: v.r.URL.Path, Groups: emojiGroups()})
	}
}

// react adds a reaction, or removes the one that the user has given.
func (w *Web) react(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, note, back, err := w.reactTo(v, ref, c)
		if err != nil {
			return err
		}
		if err := w.Plan.ToggleAward(v, v.actor, on, note, strings.Trim(v.text("name"), ":")); err != nil {
			return err
		}
		return v.redirect(back)
	}
}

// emojiList is the list for the picker: groups of emoji with their names.
var emojiList = sync.OnceValues(func() ([]byte, error) {
	type group struct {
		Name string      `json:"name"`
		List [][2]string `json:"list"` // the emoji, and its names
	}
	var groups []group
	for _, g := range emojiGroups() {
		one := group{Name: g.Name}
		for _, e := range g.List {
			one.List = append(one.List, [2]string{e.Text, strings.Join(append([]string{e.Name}, e.Aliases...), " ")})
		}
		groups = append(groups, one)
	}
	return json.Marshal(groups)
})

func (w *Web) emojis(v *visit) error {
	list, err := emojiList()
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "private, max-age=86400")
	v.w.WriteHeader(http.StatusOK)
	_, err = v.w.Write(list)
	return err
}
