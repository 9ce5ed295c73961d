package featureflag

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/glob"
	"svc/internal/patch"
)

// Strategy decides for which users an active flag is on.
type Strategy struct {
	ID         int64
	Name       string
	Parameters map[string]string
	UserList   *UserList // of the strategy gitlabUserList
	Scopes     []*Scope
}

// Scope is an environment, or a pattern of environments, of a strategy.
type Scope struct {
	ID          int64
	Environment string
}

// The strategies.
const (
	AllUsers        = "default"
	PercentOfUsers  = "gradualRolloutUserId"
	FlexibleRollout = "flexibleRollout"
	UserIDs         = "userWithId"
	InUserList      = "gitlabUserList"
)

// strategies lists the parameters of each strategy. All are required.
var strategies = map[string][]string{
	AllUsers: {}, InUserList: {}, PercentOfUsers: {"groupId", "percentage"}, FlexibleRollout: {"groupId", "rollout", "stickiness"}, UserIDs: {"userIds"},
}

const (
	maxStrategies  = 50  // of a flag
	maxScopes      = 100 // of a strategy
	maxEnvironment = 255
	maxUserID      = 256
	maxUserIDs     = 64 << 10 // bytes of a list
)

// StrategyChange adds a strategy, or changes or removes the strategy with the ID.
// Nil keeps the current value.
type StrategyChange struct {
	ID         *int64
	Name       *string
	Parameters json.RawMessage
	UserListID *int64
	Scopes     []ScopeChange
	Remove     bool
}

// ScopeChange adds a scope, or changes or removes the scope with the ID.
type ScopeChange struct {
	ID          *int64
	Environment *string
	Remove      bool
}

func (s *Service) applyStrategies(ctx context.Context, q db.Q, f *Flag, changes []StrategyChange) ([]*Strategy, error) {
	if len(changes) > 2*maxStrategies { // each may need a query
		return nil, errs.Invalid("A feature flag has at most %d strategies", maxStrategies)
	}
	list := slices.Clone(f.Strategies)
	for _, c := range changes {
		var st *Strategy
		var ok bool
		if list, st, ok = patch.Element(list, c.ID, c.Remove, func(st *Strategy) int64 { return st.ID }); !ok {
			return nil, errs.NotFound("")
		}
		if st == nil {
			continue
		}
		if st.Parameters == nil {
			st.Parameters = map[string]string{}
		}
		if err := s.applyStrategy(ctx, q, f.ProjectID, st, c); err != nil {
			return nil, err
		}
	}
	if len(list) > maxStrategies {
		return nil, errs.Invalid("A feature flag has at most %d strategies", maxStrategies)
	}
	return list, nil
}

func (s *Service) applyStrategy(ctx context.Context, q db.Q, projectID int64, st *Strategy, c StrategyChange) error {
	patch.Set(&st.Name, c.Name)
	if _, ok := strategies[st.Name]; !ok {
		return errs.InvalidField("strategies.name", "strategy name is invalid")
	}
	if c.Parameters != nil {
		var err error
		if st.Parameters, err = readParameters(c.Parameters); err != nil {
			return err
		}
	}
	if c.UserListID != nil {
		list, err := findUserListByID(ctx, q, projectID, *c.UserListID)
		if errors.Is(err, db.ErrNoRows) {
			return errs.InvalidField("strategies.user_list", "must belong to the same project")
		}
		if err != nil {
			return err
		}
		st.UserList = list
	}
	if st.Name != InUserList {
		st.UserList = nil
	} else if st.UserList == nil {
		return errs.InvalidField("strategies.user_list", "can't be blank")
	}
	if err := st.check(); err != nil {
		return err
	}
	return st.applyScopes(c.Scopes)
}

// readParameters parses an object of strings. Clients send it as JSON or as a string
// that contains JSON.
func readParameters(raw json.RawMessage) (map[string]string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	values := map[string]string{}
	if strings.TrimSpace(string(raw)) == "" {
		return values, nil
	}
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return nil, errs.InvalidField("strategies.parameters", "parameters are invalid")
	}
	return values, nil
}

var groupPattern = regexp.MustCompile(`^[a-z]{1,32}$`)

// check validates the parameters of a strategy.
func (st *Strategy) check() error {
	const field = "strategies.parameters"
	want, have := slices.Clone(strategies[st.Name]), slices.Sorted(maps.Keys(st.Parameters))
	slices.Sort(want)
	if !slices.Equal(want, have) {
		return errs.InvalidField(field, "parameters are invalid")
	}
	for _, name := range []string{"percentage", "rollout"} {
		if text, ok := st.Parameters[name]; ok && !percent(text) {
			return errs.InvalidField(field, "%s must be a string between 0 and 100 inclusive", name)
		}
	}
	if text, ok := st.Parameters["groupId"]; ok && !groupPattern.MatchString(text) {
		return errs.InvalidField(field, "groupId parameter is invalid")
	}
	if text, ok := st.Parameters["stickiness"]; ok && !slices.Contains(Stickiness(), text) {
		return errs.InvalidField(field, "stickiness parameter must be default, userId, sessionId, or random")
	}
	if text, ok := st.Parameters["userIds"]; ok {
		if problem := checkUserIDs(text); problem != "" {
			return errs.InvalidField(field, "userIds %s", problem)
		}
	}
	return nil
}

// Stickiness returns the values of the parameter stickiness.
func Stickiness() []string { return []string{"default", "userId", "sessionId", "random"} }

func percent(text string) bool {
	if strings.TrimLeft(text, "0123456789") != "" {
		return false
	}
	n, err := strconv.Atoi(text)
	return err == nil && n <= 100
}

// checkUserIDs returns the error message for a list of user IDs; empty if it is
// valid.
func checkUserIDs(text string) string {
	if len(text) > maxUserIDs {
		return "is too long (maximum is " + strconv.Itoa(maxUserIDs) + " bytes)"
	}
	seen := map[string]bool{}
	for id := range strings.SplitSeq(text, ",") {
		id = strings.TrimSpace(id)
		if id == "" || utf8.RuneCountInString(id) > maxUserID || strings.ContainsAny(id, "\n\r") || seen[id] {
			return "must be a string of unique comma separated values each " + strconv.Itoa(maxUserID) + " characters or less"
		}
		seen[id] = true
	}
	return ""
}

func (st *Strategy) applyScopes(changes []ScopeChange) error {
	if len(changes) > 2*maxScopes {
		return errs.Invalid("A strategy has at most %d scopes", maxScopes)
	}
	list := slices.Clone(st.Scopes)
	for _, c := range changes {
		id := c.ID
		if id != nil && *id == 0 {
			id = nil
		}
		var sc *Scope
		var ok bool
		if list, sc, ok = patch.Element(list, id, c.Remove, func(sc *Scope) int64 { return sc.ID }); !ok {
			return errs.NotFound("")
		}
		if sc == nil {
			continue
		}
		patch.Set(&sc.Environment, c.Environment)
		if sc.Environment == "" || utf8.RuneCountInString(sc.Environment) > maxEnvironment || strings.ContainsAny(sc.Environment, "\n\r") {
			return errs.InvalidField("strategies.scopes.environment_scope", "is invalid")
		}
	}
	if len(list) > maxScopes {
		return errs.Invalid("A strategy has at most %d scopes", maxScopes)
	}
	st.Scopes = list
	return nil
}

// applies reports whether a strategy applies to an environment. Asterisks match any
// text.
func (st *Strategy) applies(environment string) bool {
	return slices.ContainsFunc(st.Scopes, func(sc *Scope) bool { return glob.Wild(sc.Environment, environment) })
}
