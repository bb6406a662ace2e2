package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"
)

// render gives a value as every client of the matrix writes it.
func render(value any) any {
	switch v := value.(type) {
	case nil, bool:
		return v
	case float32:
		// By its bits; NaN has many.
		if math.IsNaN(float64(v)) {
			return "nan"
		}
		return fmt.Sprintf("%08x", math.Float32bits(v))
	case float64:
		if math.IsNaN(v) {
			return "nan"
		}
		return fmt.Sprintf("%016x", math.Float64bits(v))
	case []byte:
		return hex.EncodeToString(v)
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = render(item)
		}
		return items
	case map[string]any:
		fields := map[string]any{}
		for name, field := range v {
			fields[name] = render(field)
		}
		return fields
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000000")
	default:
		return fmt.Sprint(v)
	}
}

// parameterOf turns what JSON says, where every number is a float64, to what is bound.
func parameterOf(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case []any:
		items := make([]int64, len(v))
		for i, item := range v {
			items[i] = int64(item.(float64))
		}
		return items
	default:
		return v
	}
}
