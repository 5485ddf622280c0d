// Package lint has only tests: what holds for the repository as a whole. Who may import whom, what the
// packages export, what the modules require, whether the code in the guides compiles, and whether every
// exported type has an example. Package house, below, measures the rooms.
package lint
