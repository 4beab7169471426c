// SPDX-License-Identifier: Apache-2.0
// Reads a file of routes of alerts.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/yaml/yaml.h"
#include "daemon/alerts/alert_routes.h"
#include "daemon/model/verdict.h"

namespace rollcall {
namespace {

std::string ReadWord(const std::string& key, const YAML::Node& node) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    FailAt(node.Mark(), absl::StrCat(key, " wants one value:  ", key, ": VALUE"));
  }
  return node.Scalar();
}

std::vector<std::string> ReadWords(const std::string& key, const YAML::Node& node) {
  if (!node.IsSequence()) return {ReadWord(key, node)};
  std::vector<std::string> words;
  for (const YAML::Node& word : node) words.push_back(ReadWord(key, word));
  if (words.empty()) {
    FailAt(node.Mark(), absl::StrCat(key, " is an empty list:  ", key, ": [VALUE, VALUE]"));
  }
  return words;
}

bool ReadSwitch(const std::string& key, const YAML::Node& node) {
  const std::string word = ReadWord(key, node);
  if (word != "true" && word != "false") {
    FailAt(node.Mark(), absl::StrCat(key, " is true or false"));
  }
  return word == "true";
}

// Calls read(key, value) for each key. The keys are those of `known`, each once.
template <typename Read>
void ReadKeys(const std::string& what, const YAML::Node& node,
              const std::vector<std::string>& known, Read read) {
  const std::string keys = absl::StrJoin(known, ", ");
  if (!node.IsMap()) FailAt(node.Mark(), absl::StrCat(what, " has the keys ", keys));
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string key = ReadWord("a key", entry.first);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      FailAt(entry.first.Mark(), absl::StrCat(what, " has no key ", key, "; it has ", keys));
    }
    if (!seen.insert(key).second) {
      FailAt(entry.first.Mark(), absl::StrCat("the key ", key, " is there twice; delete one"));
    }
    read(key, entry.second);
  }
}

void CheckUrl(const YAML::Mark& mark, const std::string& url) {
  if (absl::StartsWith(url, "https://") || absl::StartsWith(url, "http://")) return;
  FailAt(mark, "url begins with https:// or http://, as in  url: https://api.eu.opsgenie.com");
}

// The kind decides about the other keys, so it is read first.
const AlertKindFacts& ReadKind(const YAML::Node& node) {
  const YAML::Node word = node["kind"];
  if (!word) FailAt(node.Mark(), absl::StrCat("the receiver has no kind: ", AlertKindsInWords()));
  const AlertKindFacts* kind = FindAlertKind(ReadWord("kind", word));
  if (kind == nullptr) {
    FailAt(word.Mark(),
           absl::StrCat("unknown kind of receiver; kind is one of ", AlertKindsInWords()));
  }
  return *kind;
}

void CheckTarget(const AlertKindFacts& kind, const YAML::Node& node) {
  if (static_cast<bool>(node["target"]) == static_cast<bool>(node["file"])) {
    FailAt(node.Mark(), absl::StrCat("the receiver needs either target (", kind.target,
                                     ") or file (the path of a file with it)"));
  }
  if (node["target"] && kind.is_secret) {
    FailAt(node["target"].Mark(),
           absl::StrCat("the target of ", kind.name, ", ", kind.target,
                        ", is a secret: write it into a file of mode 0600, and here  file: "
                        "/etc/rollcall/",
                        kind.name));
  }
  if (node["url"] && std::string(kind.url).empty()) {
    FailAt(node["url"].Mark(),
           absl::StrCat("url is for pagerduty, opsgenie and kubernetes; the target of ", kind.name,
                        " is ", kind.target));
  }
}

bool CanSign(AlertKind kind) {
  return kind == AlertKind::kJson || kind == AlertKind::kCloudEvents || kind == AlertKind::kKafka;
}

AlertTarget ReadReceiver(const YAML::Node& node) {
  AlertTarget target;
  target.is_routed = true;
  ReadKeys("a receiver", node, {"name", "kind", "target", "file", "url", "sign"},
           [&target](const std::string& key, const YAML::Node& value) {
             const std::string word = ReadWord(key, value);
             if (key == "name") target.name = word;
             if (key == "target") target.where = word;
             if (key == "file") target.where = absl::StrCat("@", word);
             if (key == "url") CheckUrl(value.Mark(), target.url = word);
             if (key == "sign") target.signing_key = word;
           });
  if (target.name.empty()) FailAt(node.Mark(), "the receiver has no name:  name: on-call");
  const AlertKindFacts& kind = ReadKind(node);
  CheckTarget(kind, node);
  target.kind = kind.kind;
  if (!target.signing_key.empty() && !CanSign(target.kind)) {
    FailAt(node["sign"].Mark(), "sign is for json, cloudevents and kafka");
  }
  return target;
}

std::vector<AlertTarget> ReadReceivers(const YAML::Node& list) {
  if (!list.IsSequence()) {
    FailAt(list.Mark(), "receivers is a list:  - {name: on-call, kind: opsgenie, file: PATH}");
  }
  std::vector<AlertTarget> receivers;
  for (const YAML::Node& node : list) {
    AlertTarget target = ReadReceiver(node);
    for (const AlertTarget& other : receivers) {
      if (other.name == target.name) {
        FailAt(node.Mark(), absl::StrCat("another receiver has the name ", target.name,
                                         "; give this one a name of its own"));
      }
      if (ReceiverId(other) == ReceiverId(target)) {
        FailAt(node.Mark(), absl::StrCat(target.name, " is the same receiver as ", other.name,
                                         "; delete one, and let routes name the other"));
      }
    }
    receivers.push_back(std::move(target));
  }
  return receivers;
}

std::string ReadCertainty(const YAML::Node& node) {
  std::vector<std::string> known;
  for (const Certainty certainty :
       {Certainty::kPossible, Certainty::kLikely, Certainty::kCertain}) {
    known.emplace_back(CertaintyName(certainty));
  }
  const std::string word = ReadWord("certainty", node);
  if (std::find(known.begin(), known.end(), word) == known.end()) {
    FailAt(node.Mark(), absl::StrCat("certainty is one of ", absl::StrJoin(known, ", ")));
  }
  return word;
}

std::vector<std::string> ReadCauses(const YAML::Node& node) {
  std::vector<std::string> known;
#define CAUSE(name, text) \
  if (!IsWarning(Cause::name)) known.emplace_back(text);
  ROLLCALL_CAUSES(CAUSE)
#undef CAUSE
  std::vector<std::string> causes = ReadWords("cause", node);
  for (const std::string& cause : causes) {
    if (std::find(known.begin(), known.end(), cause) != known.end()) continue;
    FailAt(node.Mark(), absl::StrCat("no incident has the cause ", cause, "; there are ",
                                     absl::StrJoin(known, ", ")));
  }
  return causes;
}

std::vector<size_t> ReadTo(const YAML::Node& node, const std::vector<AlertTarget>& receivers) {
  std::vector<size_t> to;
  for (const std::string& name : ReadWords("to", node)) {
    const auto at = std::find_if(receivers.begin(), receivers.end(),
                                 [&name](const AlertTarget& known) { return known.name == name; });
    if (at == receivers.end()) {
      const auto format = [](std::string* out, const AlertTarget& known) {
        out->append(known.name);
      };
      FailAt(node.Mark(), absl::StrCat("no receiver has the name ", name, "; there are ",
                                       absl::StrJoin(receivers, ", ", format)));
    }
    to.push_back(static_cast<size_t>(at - receivers.begin()));
  }
  return to;
}

AlertRoute ReadRoute(const YAML::Node& node, const std::vector<AlertTarget>& receivers) {
  AlertRoute route;
  ReadKeys("a route", node, {"tenant", "job", "certainty", "cause", "to", "continue"},
           [&](const std::string& key, const YAML::Node& value) {
             if (key == "tenant") route.tenant = ReadWord(key, value);
             if (key == "job") route.job = ReadWord(key, value);
             if (key == "certainty") route.certainty = ReadCertainty(value);
             if (key == "cause") route.causes = ReadCauses(value);
             if (key == "to") route.to = ReadTo(value, receivers);
             if (key == "continue") route.goes_on = ReadSwitch(key, value);
           });
  if (route.to.empty()) FailAt(node.Mark(), "the route has no receiver:  to: NAME");
  return route;
}

bool FitsAll(const AlertRoute& route) {
  return route.tenant.empty() && route.job.empty() && route.certainty.empty() &&
         route.causes.empty();
}

// A route that is never asked, and a receiver that nothing goes to, are mistakes.
void CheckUse(const YAML::Node& root, const AlertRoutes& file) {
  std::set<size_t> used;
  for (size_t i = 0; i < file.routes.size(); ++i) {
    const AlertRoute& route = file.routes[i];
    used.insert(route.to.begin(), route.to.end());
    if (FitsAll(route) && !route.goes_on && i + 1 < file.routes.size()) {
      FailAt(root["routes"][i].Mark(),
             "this route takes every incident, so nothing comes to the routes below it: move it to "
             "the end, or add  continue: true");
    }
  }
  for (size_t i = 0; i < file.receivers.size(); ++i) {
    if (used.count(i) > 0) continue;
    FailAt(root["receivers"][i].Mark(),
           absl::StrCat("no route names the receiver ", file.receivers[i].name,
                        ":  - to: ", file.receivers[i].name));
  }
}

AlertRoutes ReadFile(const YAML::Node& root) {
  ReadKeys("the file", root, {"receivers", "routes"}, [](const std::string&, const YAML::Node&) {});
  if (!root["receivers"] || !root["routes"]) {
    FailAt(YAML::Mark::null_mark(), "the file needs both receivers and routes");
  }
  AlertRoutes file;
  file.receivers = ReadReceivers(root["receivers"]);
  if (!root["routes"].IsSequence()) FailAt(root["routes"].Mark(), "routes is a list:  - to: NAME");
  for (const YAML::Node& node : root["routes"]) {
    file.routes.push_back(ReadRoute(node, file.receivers));
  }
  CheckUse(root, file);
  return file;
}

}  // namespace

absl::StatusOr<AlertRoutes> ParseAlertRoutes(const std::string& text) {
  return ReadYaml([&text] { return ReadFile(YAML::Load(text)); },
                  "not YAML: $0; a value that begins with * or @ stands between quotes");
}

}  // namespace rollcall
