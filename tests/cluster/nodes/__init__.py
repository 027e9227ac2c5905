"""A cluster of nodes on one machine; ../README.md describes it."""
