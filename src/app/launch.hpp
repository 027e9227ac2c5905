// Makes the ranks of a launch agree, before anything else, that they are one launch and which deck
// they run.
#pragma once

#include "app/deck_file.hpp"
#include "deck/config.hpp"
#include "deck/rules.hpp"
#include "grid/group.hpp"
#include "runtime/session.hpp"

namespace kzero::app {

/// Throws AgreedError(usage) if the launch cannot be one run: another MPI's launcher started it, or
/// OMP_NUM_THREADS requests more threads than a process can start. Throws a plain Error if only
/// some ranks of a foreign launch can tell. Collective over `world`.
void check_launch(const grid::Group& world);

/// Rank 0 reads the deck once, and the file of its model.config; every rank makes the same Config
/// from them. Call it after check_launch(), which finds ranks that would each read the deck alone.
/// Throws AgreedError(usage) with everything that is wrong, or with a key in which ranks differ
/// because they were started with different overrides or decks. Collective over `world`.
deck::Config read_deck(const grid::Group& world, const DeckArguments& arguments,
                       deck::Purpose purpose);

/// Where the ranks of the session's launch run. Collective over them.
deck::Placement placement_of(const deck::Config& config, const runtime::Session& session);

}  // namespace kzero::app
