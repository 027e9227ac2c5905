#include "app/node_problems.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace kzero::app {

namespace {

constexpr std::size_t max_hosts = 3;  // named per problem

struct RankProblems {
  std::string host;
  ProblemList problems;
};

RankProblems unpack(const std::string& bytes) {
  std::size_t at = 0;
  const auto next = [&] {
    std::string text = bytes.c_str() + at;
    at += text.size() + 1;
    return text;
  };
  RankProblems found{next(), {}};
  while (at < bytes.size()) {
    const std::string subject = next();
    found.problems.add(subject, next());
  }
  return found;
}

std::string place_of(const std::set<std::string>& hosts) {
  std::vector<std::string> named(hosts.begin(), hosts.end());
  named.resize(std::min(named.size(), max_hosts));
  const std::size_t more = hosts.size() - named.size();
  return fmt::format(" (found on {}{})", fmt::join(named, ", "),
                     more > 0 ? fmt::format(" and {} more nodes", more) : "");
}

}  // namespace

std::string pack(const std::string& host, const ProblemList& problems) {
  std::string bytes = host + '\0';
  for (const ProblemList::Problem& problem : problems.problems())
    bytes += problem.subject + '\0' + problem.text + '\0';
  return bytes;
}

ProblemList merged(const std::vector<std::string>& of_ranks) {
  std::set<std::string> hosts;
  std::map<std::string, std::set<std::string>> finders;  // hosts by subject
  std::vector<ProblemList::Problem> all;
  for (const std::string& bytes : of_ranks) {
    const RankProblems rank = unpack(bytes);
    hosts.insert(rank.host);
    for (const ProblemList::Problem& problem : rank.problems.problems()) {
      finders[problem.subject].insert(rank.host);
      all.push_back(problem);
    }
  }
  ProblemList list;
  for (const ProblemList::Problem& problem : all) {
    const std::set<std::string>& found_on = finders[problem.subject];
    list.add(problem.subject,
             problem.text + (found_on.size() < hosts.size() ? place_of(found_on) : ""));
  }
  return list;
}

}  // namespace kzero::app
