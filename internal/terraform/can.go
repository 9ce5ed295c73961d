package terraform

import (
	"svc/internal/actor"
	"svc/internal/project"
)

// Sees reports whether an actor with access to the project may read its states.
func Sees(by actor.Actor, p *project.Project) bool {
	return p.MayRead(by, project.InfrastructurePart)
}

// MayChange reports whether an actor who can read the states may also lock, unlock and
// delete them.
func MayChange(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.InfrastructurePart, project.Maintainer)
}
