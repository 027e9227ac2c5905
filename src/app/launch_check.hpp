// kzero check --launch: tests whether the ranks, nodes and links of a launch are fit for a run.
#pragma once

#include "app/deck_file.hpp"
#include "base/error.hpp"

namespace kzero::app {

enum class SurveyOutput { text, json };

/// Compares the ranks of this launch, measures their nodes and links, and prints the findings on
/// rank 0. Returns done if the ranks can be one run, however slow some are, otherwise other.
/// Collective over the launch.
ExitCode survey_launch(const DeckArguments& arguments, SurveyOutput output);

}  // namespace kzero::app
