// A list of faults that are found in one pass and shown together, one per subject. It is
// independent of files and decks.
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

  /// The problems, one per line. Problems are of one kind if their texts differ only in the subject
  /// and in numbers. More than eight of one kind are combined on one line: the first problem, the
  /// number of the others, and the subjects of some. Shows at most a hundred lines, then the number
  /// of lines left out.
  std::string text() const;

  /// Throws Error(code) with text() unless the list is empty.
  void throw_if_any(ExitCode code) const;

 private:
  std::vector<Problem> problems_;
};

}  // namespace kzero
