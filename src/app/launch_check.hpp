// kzero check --launch: tests whether the ranks, nodes and links of a launch are fit for a run.
#pragma once

#include <string>

#include "app/deck_file.hpp"
#include "base/error.hpp"

namespace kzero::app {

enum class SurveyOutput { text, json };

struct SurveyOptions {
  SurveyOutput output = SurveyOutput::text;
  std::string rates;  // the file to write for `kzero plan --rates`; empty: none
};

/// Compares the ranks of this launch, measures their nodes and links, and prints the findings on
/// rank 0; also writes a rates file if one is named. Returns done if the ranks can be one run,
/// however slow some are, otherwise other. Collective over the launch.
ExitCode survey_launch(const DeckArguments& arguments, const SurveyOptions& options);

}  // namespace kzero::app
