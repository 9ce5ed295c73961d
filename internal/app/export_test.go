package app

import "context"

// StartRunner creates the built-in runner of a server, as Listen does.
func StartRunner(ctx context.Context, s *Server) error {
	_, err := s.newRunner(ctx)
	return err
}

// SealedColumns returns the columns that RotateKey encrypts again, as table.column.
func SealedColumns() []string {
	var list []string
	for _, s := range (*App)(nil).sealed() {
		list = append(list, s.table+"."+s.column)
	}
	return list
}

// CloseListener closes the listener of the HTTP server.
func (s *Server) CloseListener() { _ = s.listener.Close() }
