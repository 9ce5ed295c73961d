package app

// SealedColumns are what RotateKey seals anew, as table.column.
func SealedColumns() []string {
	var list []string
	for _, s := range (*App)(nil).sealed() {
		list = append(list, s.table+"."+s.column)
	}
	return list
}
