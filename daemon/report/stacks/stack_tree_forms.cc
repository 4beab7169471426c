// SPDX-License-Identifier: Apache-2.0
// The output formats of a StackTree, for people and tools. None uses recursion, because a stack of
// 5,000 frames makes a tree of that depth.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/cut_text.h"
#include "daemon/report/stacks/stack_tree.h"

namespace rollcall {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kMostIndent = 60;  // limit; deeper branches keep this indent
constexpr size_t kColumns = 100;

std::string Count(uint64_t n, const char* one) {
  return absl::StrCat(n, " ", one, n == 1 ? "" : "s");
}

std::string Heading(const StackTree::Node& node) {
  return absl::StrCat("[", node.ranks.List(), "] ", Count(node.ranks.size(), "rank"), ", ",
                      Count(node.threads, "thread"));
}

bool StartsAt(const std::string& text, size_t at, const char* word) {
  return text.compare(at, std::char_traits<char>::length(word), word) == 0;
}

// "<module>", "f.<locals>.<lambda>", "f <string>:3", "<12 frames left out>": not template
// arguments.
bool IsNameInBrackets(const std::string& name, size_t at) {
  if (name[at] != '<') return false;
  if (at == 0 || name[at - 1] == '.') return true;
  const size_t end = name.find('>', at);
  return name[at - 1] == ' ' && end != std::string::npos && end + 2 < name.size() &&
         name[end + 1] == ':' && name[end + 2] != ':';
}

// A C++ name without template arguments and parameters: "Map<>::Find()".
std::string Shortened(const std::string& name) {
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && IsNameInBrackets(name, i)) {
      const size_t end = std::min(name.find('>', i), name.size() - 1);
      out.append(name, i, end - i + 1);
      i = end;
      continue;
    }
    if (depth == 0) {
      for (const char* kept : {"(anonymous namespace)", "operator()", "operator<<", "operator<",
                               "operator>>", "operator->", "operator>"}) {
        if (!StartsAt(name, i, kept)) continue;
        out += kept;
        i += std::char_traits<char>::length(kept);
        break;
      }
      if (i >= name.size()) break;
    }
    const char c = name[i];
    if (c == '<' || c == '(') {
      if (depth++ == 0) out += c;
    } else if ((c == '>' || c == ')') && depth > 0) {
      if (--depth == 0) out += c;
    } else if (depth == 0) {
      out += c;
    }
  }
  return depth == 0 ? out : name;  // not a C++ name
}

// All threads of the parent continue in this child, so it is not a new branch.
bool GoesOn(const StackTree::Node& parent, const StackTree::Node& child) {
  return parent.children.size() == 1 && parent.ending == 0 && parent.threads == child.threads;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

class TextWriter {
 public:
  TextWriter(const StackTree& tree, size_t most_lines) : tree_(tree), most_lines_(most_lines) {}

  std::string Write() {
    Line(0, Heading(tree_.root()));
    std::vector<Step> way;
    Push(tree_.root(), kIndent, &way);
    while (!way.empty()) {
      const Step step = way.back();
      way.pop_back();
      const StackTree::Node& node = tree_.node(step.node);
      size_t indent = step.indent;
      if (step.is_branch) {
        Line(indent, Heading(node));
        indent += kIndent;
      }
      Line(indent, Shortened(tree_.FrameName(node)));
      if (node.ending != 0 && !node.children.empty()) {
        Line(indent + kIndent, absl::StrCat("(innermost of ", Count(node.ending, "thread"), ")"));
      }
      Push(node, indent, &way);
    }
    if (lines_ > most_lines_) {
      absl::StrAppend(&text_, "... ", lines_ - most_lines_, " more lines\n");
    }
    return std::move(text_);
  }

 private:
  struct Step {
    uint32_t node;
    size_t indent;
    bool is_branch;
  };

  void Push(const StackTree::Node& parent, size_t indent, std::vector<Step>* way) {
    const std::vector<uint32_t> children = tree_.ChildrenInOrder(parent);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      way->push_back({*child, indent, !GoesOn(parent, tree_.node(*child))});
    }
  }

  void Line(size_t indent, const std::string& line) {
    if (++lines_ > most_lines_) return;
    const size_t room = kColumns - std::min(indent, kMostIndent);
    text_.append(kColumns - room, ' ');
    text_ += CutText(line, room, "...");
    text_ += '\n';
  }

  const StackTree& tree_;
  const size_t most_lines_;
  size_t lines_ = 0;
  std::string text_;
};

}  // namespace

std::string ToText(const StackTree& tree, size_t most_lines) {
  return TextWriter(tree, most_lines).Write();
}

std::string ToFolded(const StackTree& tree) {
  std::string text;
  for (const StackTree::Class& one : tree.Classes()) {
    // A frame's name must not contain the format's separators.
    std::vector<std::string> frames;
    for (const std::string& frame : one.frames) {
      frames.push_back(absl::StrReplaceAll(frame, {{";", ":"}, {"\n", " "}}));
    }
    absl::StrAppend(&text, absl::StrJoin(frames, ";"), " ", one.threads, "\n");
  }
  return text;
}

std::string ToDot(const StackTree& tree) {
  std::string text = "digraph stacks {\n  node [shape=box, fontname=\"monospace\"];\n";
  std::vector<uint32_t> way = {0};
  while (!way.empty()) {
    const uint32_t at = way.back();
    way.pop_back();
    const StackTree::Node& node = tree.node(at);
    absl::StrAppend(&text, "  n", at, " [label=\"", at == 0 ? "all" : Escaped(tree.FrameName(node)),
                    "\"];\n");
    for (const uint32_t child : tree.ChildrenInOrder(node)) {
      absl::StrAppend(&text, "  n", at, " -> n", child, " [label=\"",
                      Escaped(Heading(tree.node(child))), "\"];\n");
      way.push_back(child);
    }
  }
  return text + "}\n";
}

namespace {

std::string InJson(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

// Writes the JSON in pieces, because the library writes nested values by recursion.
std::string ToJson(const StackTree& tree) {
  struct Step {
    uint32_t node;
    bool closes;
  };
  std::string text;
  std::vector<Step> way = {{0, false}};
  bool first = true;  // among its siblings
  while (!way.empty()) {
    const Step step = way.back();
    way.pop_back();
    if (step.closes) {
      text += "]}";
      first = false;
      continue;
    }
    const StackTree::Node& node = tree.node(step.node);
    absl::StrAppend(&text, first ? "" : ",", "{\"frame\":", InJson(tree.FrameName(node)),
                    ",\"ranks\":\"", node.ranks.List(), "\",\"threads\":", node.threads,
                    ",\"children\":[");
    way.push_back({step.node, true});
    const std::vector<uint32_t> children = tree.ChildrenInOrder(node);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      way.push_back({*child, false});
    }
    first = true;
  }
  return text + "\n";
}

}  // namespace rollcall
