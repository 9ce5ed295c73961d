package config

import "fmt"

// instance is one job of a definition.
type instance struct {
	name     string
	parallel *Parallel
}

func (def *definition) instanceCount() int { return max(1, def.count, len(def.matrix)) }

// instances returns the jobs of a definition: one, or those of parallel.
func (def *definition) instances() []instance {
	var out []instance
	switch {
	case def.matrix != nil:
		for i, row := range def.matrix {
			out = append(out, instance{
				name:     fmt.Sprintf("%s: [%s]", def.Name, rowName(row)),
				parallel: &Parallel{Index: i + 1, Total: len(def.matrix), Matrix: row},
			})
		}
	case def.count > 0:
		for i := range def.count {
			out = append(out, instance{
				name:     fmt.Sprintf("%s %d/%d", def.Name, i+1, def.count),
				parallel: &Parallel{Index: i + 1, Total: def.count},
			})
		}
	default:
		out = append(out, instance{name: def.Name})
	}
	return out
}

// matches reports whether an instance is selected by a need with a matrix.
func (p *Parallel) matches(rows [][]Variable) bool {
	if p == nil {
		return false
	}
	have := LookupIn(p.Matrix)
	for _, row := range rows {
		same := len(row) == len(p.Matrix)
		for _, v := range row {
			found, ok := have(v.Key)
			same = same && ok && found.Value == v.Value
		}
		if same {
			return true
		}
	}
	return false
}
