// The matrix in Go: the extension file and duckdb-go.
//
// Arguments: the extension, and a file of sessions. One JSON object goes to stdout.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
)

type query struct {
	Name       string
	SQL        string
	Parameters []any
	Interrupt  bool
}

type session struct {
	Name, Database, Directory string
	Databases, Connections    int
	Queries                   []query
}

type answer = map[string]any

func main() {
	if err := all(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(extension, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var sessions []session
	if err := json.Unmarshal(text, &sessions); err != nil {
		return err
	}
	answers := map[string][]answer{}
	for _, session := range sessions {
		if answers[session.Name], err = run(extension, session); err != nil {
			return fmt.Errorf("session %s: %w", session.Name, err)
		}
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer db.Close()
	var version string
	if err := db.QueryRow("SELECT version()").Scan(&version); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer{"version": version, "sessions": answers})
}

// run gives the answers of each connection of a session; the connections work at the same time.
func run(extension string, s session) ([]answer, error) {
	var connections []*sql.Conn
	for range s.Databases {
		db, err := sql.Open("duckdb", s.Database+"?allow_unsigned_extensions=true")
		if err != nil {
			return nil, err
		}
		defer db.Close()
		if _, err := db.Exec("LOAD '" + extension + "'"); err != nil {
			return nil, err
		}
		if _, err := db.Exec("CALL engram_attach(?)", s.Directory); err != nil {
			return nil, err
		}
		for range s.Connections {
			connection, err := db.Conn(context.Background())
			if err != nil {
				return nil, err
			}
			defer connection.Close()
			connections = append(connections, connection)
		}
	}
	answers := make([]answer, len(connections))
	var working sync.WaitGroup
	for i, connection := range connections {
		working.Add(1)
		go func() {
			defer working.Done()
			answers[i] = answer{}
			for _, query := range s.Queries {
				answers[i][query.Name] = ask(connection, query)
			}
		}()
	}
	working.Wait()
	return answers, nil
}

// ask gives columns, types and rows of a query, or its error and whether the connection goes on.
func ask(connection *sql.Conn, q query) answer {
	ctx := context.Background()
	if q.Interrupt {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
	}
	found, err := read(ctx, connection, q)
	if err == nil {
		return found
	}
	var number int
	then := connection.QueryRowContext(context.Background(), "SELECT 42").Scan(&number)
	return answer{"error": err.Error(), "then": then == nil && number == 42}
}

func read(ctx context.Context, connection *sql.Conn, q query) (answer, error) {
	for i, parameter := range q.Parameters {
		q.Parameters[i] = parameterOf(parameter)
	}
	result, err := connection.QueryContext(ctx, q.SQL, q.Parameters...)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	about, err := result.ColumnTypes()
	if err != nil {
		return nil, err
	}
	columns, types := []string{}, []string{}
	for _, column := range about {
		columns = append(columns, column.Name())
		types = append(types, column.DatabaseTypeName())
	}
	rows := [][]any{}
	for result.Next() {
		row, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			places[i] = &row[i]
		}
		if err := result.Scan(places...); err != nil {
			return nil, err
		}
		for i := range row {
			row[i] = render(row[i])
		}
		rows = append(rows, row)
	}
	return answer{"columns": columns, "types": types, "rows": rows}, result.Err()
}
