// A list of faults that are found in one pass and shown at once, one per subject. It knows nothing
// of files or decks.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace kzero {

class ProblemList {
 public:
  struct Problem {
    std::string subject;  // the file or the key at fault
    std::string text;     // the full sentence, which names the subject
  };

  /// Keeps the first problem of each subject.
  void add(const std::string& subject, const std::string& text);

  /// Runs f() and turns an Error that it throws into a problem of `subject`. Returns true if it
  /// threw none.
  template <class F>
  bool collect(const std::string& subject, F&& f) {
    try {
      f();
      return true;
    } catch (const Error& error) {
      add(subject, error.what());
      return false;
    }
  }

  bool empty() const { return problems_.empty(); }
  const std::vector<Problem>& problems() const { return problems_; }

  /// The problems, one per line. Where more than eight are of one kind (their texts differ in the
  /// subject and in numbers alone) there is one line for all of them: the first, how many others
  /// there are, and the subjects of some. At most a hundred lines, and the number of the others.
  std::string text() const;

  /// Throws Error(code) with text() unless the list is empty.
  void throw_if_any(ExitCode code) const;

 private:
  std::vector<Problem> problems_;
};

}  // namespace kzero
