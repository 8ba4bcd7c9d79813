// Checker reads a history from standard input, one operation a line, and says whether it fits one
// order of events: whether it is linearizable. `tests/bench/linear` writes such histories.
//
// An application's name is an object with at most one application that lives: submit takes it, kill
// frees it, list shows who has it and who had it. A value is an object that is stored and loaded.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation is a line of the history. Without a result nobody knows whether it was done: it may
// have been at any time after its call, or never.
type operation struct {
	Client   int     `json:"client"`
	Object   string  `json:"object"`
	Op       string  `json:"op"`
	Argument string  `json:"argument"`
	Result   *string `json:"result"`
	Call     int64   `json:"call"`
	Return   int64   `json:"return"`
}

// state is what an object is: the application that lives, those that have ended, or its value.
type state struct {
	living string
	ended  string // Each with a space before it, sorted.
	value  string
}

// verdict is the answer, as one line.
type verdict struct {
	Operations int      `json:"operations"`
	Objects    int      `json:"objects"`
	Wrong      []string `json:"wrong"`     // Objects whose operations fit no order.
	Undecided  []string `json:"undecided"` // Objects for which there was not time enough.
}

func (s state) hasEnded(name string) bool {
	return strings.Contains(s.ended+" ", " "+name+" ")
}

// kill returns what is left when the application that lives has ended.
func (s state) kill() state {
	ended := append(strings.Fields(s.ended), s.living)
	sort.Strings(ended)
	return state{ended: " " + strings.Join(ended, " "), value: s.value}
}

// step returns whether an operation can have this result here, and what it makes of the object.
func step(s state, op operation) (bool, state) {
	taken := s
	taken.living = op.Argument
	switch op.Op {
	case "submit":
		if isThere := s.living == op.Argument || s.hasEnded(op.Argument); isThere {
			return is(op, "ok"), s // It was sent again: nothing more happens.
		}
		if s.living != "" {
			return is(op, "refused"), s
		}
		return is(op, "ok"), taken
	case "kill":
		if s.living == op.Argument {
			return is(op, "ok"), s.kill()
		}
		return is(op, "refused") && (op.Result == nil || s.hasEnded(op.Argument)), s
	case "list":
		return is(op, s.living+";"+s.ended), s
	case "store":
		return is(op, "ok"), state{value: op.Argument}
	case "load":
		return is(op, s.value), s
	}
	panic("no such operation: " + op.Op)
}

// is returns whether a result is this one, or unknown.
func is(op operation, result string) bool {
	return op.Result == nil || *op.Result == result
}

func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(before, input, _ any) (bool, any) {
			possible, after := step(before.(state), input.(operation))
			return possible, after
		},
		DescribeOperation: func(input, _ any) string {
			op := input.(operation)
			if op.Result == nil {
				return fmt.Sprintf("%s(%s): unknown", op.Op, op.Argument)
			}
			return fmt.Sprintf("%s(%s): %s", op.Op, op.Argument, *op.Result)
		},
		DescribeState: func(of any) string { return fmt.Sprintf("%+v", of.(state)) },
	}
}

// read returns the operations of each object.
func read(lines *bufio.Scanner) (map[string][]porcupine.Operation, error) {
	lines.Buffer(nil, 1<<24)
	objects := map[string][]porcupine.Operation{}
	for number := 1; lines.Scan(); number++ {
		var op operation
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if op.Result == nil {
			op.Return = math.MaxInt64
		}
		objects[op.Object] = append(objects[op.Object], porcupine.Operation{
			ClientId: op.Client, Input: op, Call: op.Call, Output: nil, Return: op.Return,
		})
	}
	return objects, lines.Err()
}

// check judges each object alone: if each fits an order, all of them together fit one. With a
// folder, it draws there what is wrong.
func check(objects map[string][]porcupine.Operation, each time.Duration, folder string) verdict {
	found := verdict{Objects: len(objects), Wrong: []string{}, Undecided: []string{}}
	for object, operations := range objects {
		found.Operations += len(operations)
		result, info := porcupine.CheckOperationsVerbose(model(), operations, each)
		switch result {
		case porcupine.Illegal:
			found.Wrong = append(found.Wrong, object)
			if folder != "" {
				path := fmt.Sprintf("%s/%s.html", folder, strings.ReplaceAll(object, "/", "-"))
				if err := porcupine.VisualizePath(model(), info, path); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		case porcupine.Unknown:
			found.Undecided = append(found.Undecided, object)
		}
	}
	sort.Strings(found.Wrong)
	sort.Strings(found.Undecided)
	return found
}

// main takes two arguments: the time for each object, such as 60s, and a folder for pictures.
func main() {
	each, err := time.ParseDuration(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	objects, err := read(bufio.NewScanner(os.Stdin))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := json.NewEncoder(os.Stdout).Encode(check(objects, each, os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
