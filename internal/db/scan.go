package db

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Scan reads the row, by the rules of database/sql.
func (r *cursor) Scan(dest ...any) error {
	if r.conn == nil || r.ahead {
		return errors.New("scan: there is no row")
	}
	if len(dest) != r.columns {
		return fmt.Errorf("scan: the row has %d columns, not %d", r.columns, len(dest))
	}
	for i, d := range dest {
		column := r.conn.column(r.stmt, int32(i))
		if quick(r.conn, column, d) {
			continue
		}
		if err := assign(d, r.conn.value(column)); err != nil {
			return fmt.Errorf("scan column %d: %w", i, err)
		}
	}
	return nil
}

// quick scans a value of the expected type into a common destination type without
// allocating an interface. It returns false for other types. A text that equals
// the one of the previous row is kept, because most columns have few distinct
// values.
func quick(c *conn, column uintptr, dest any) bool {
	kind := c.kind(column)
	switch d := dest.(type) {
	case *string:
		if kind == sqlite3.SQLITE_TEXT {
			if text := c.text(column); text != *d {
				*d = strings.Clone(text)
			}
			return true
		}
	case *int64:
		if kind == sqlite3.SQLITE_INTEGER {
			*d = c.integer(column)
			return true
		}
	case *int:
		if kind == sqlite3.SQLITE_INTEGER {
			*d = int(c.integer(column))
			return true
		}
	case *bool:
		if kind == sqlite3.SQLITE_INTEGER {
			n := c.integer(column)
			*d = n == 1
			return n == 0 || n == 1
		}
	case *timeScanner:
		if kind == sqlite3.SQLITE_INTEGER {
			*d = timeScanner(time.UnixMicro(c.integer(column)).UTC())
			return true
		}
	case *nullTimeScanner:
		switch kind {
		case sqlite3.SQLITE_NULL:
			d.t = nil
			return true
		case sqlite3.SQLITE_INTEGER:
			t := time.UnixMicro(c.integer(column)).UTC()
			d.t = &t
			return true
		}
	case **int64:
		switch kind {
		case sqlite3.SQLITE_NULL:
			*d = nil
			return true
		case sqlite3.SQLITE_INTEGER:
			n := c.integer(column)
			*d = &n
			return true
		}
	case sql.Scanner:
	default:
		// A named type of kind string, such as a state.
		if to := reflect.ValueOf(dest); kind == sqlite3.SQLITE_TEXT && to.Kind() == reflect.Pointer && to.Elem().Kind() == reflect.String {
			if text := c.text(column); text != to.Elem().String() {
				to.Elem().SetString(strings.Clone(text))
			}
			return true
		}
	}
	return false
}

// assign stores a value in what dest points to.
func assign(dest, value any) error {
	switch d := dest.(type) {
	case sql.Scanner:
		return d.Scan(value)
	case *any:
		*d = value
		return nil
	case *[]byte:
		*d = nil
		if value != nil {
			*d = []byte(text(value))
		}
		return nil
	case *bool:
		b, err := driver.Bool.ConvertValue(value)
		if err == nil {
			*d = b.(bool)
		}
		return err
	case *string:
		if value != nil {
			*d = text(value)
			return nil
		}
	}
	at := reflect.ValueOf(dest)
	if at.Kind() != reflect.Pointer || at.IsNil() {
		return fmt.Errorf("cannot scan into %T", dest)
	}
	return assignTo(at.Elem(), value)
}

// assignTo is assign for other types, by reflection.
func assignTo(to reflect.Value, value any) error {
	if to.Kind() == reflect.Pointer {
		if value == nil {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return assign(to.Interface(), value)
	}
	if value == nil {
		return fmt.Errorf("cannot scan null into a %v", to.Type())
	}
	from := reflect.ValueOf(value)
	var err error
	switch kind := to.Kind(); {
	case kind == from.Kind() && from.CanConvert(to.Type()):
		to.Set(from.Convert(to.Type()))
	case kind == reflect.String && from.Kind() == reflect.Slice:
		to.SetString(text(value))
	case to.CanInt():
		var n int64
		n, err = strconv.ParseInt(text(value), 10, to.Type().Bits())
		to.SetInt(n)
	case to.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text(value), 10, to.Type().Bits())
		to.SetUint(n)
	case to.CanFloat():
		var n float64
		n, err = strconv.ParseFloat(text(value), to.Type().Bits())
		to.SetFloat(n)
	default:
		err = fmt.Errorf("cannot scan %v into a %v", value, to.Type())
	}
	return err
}

// text formats a value as text.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
