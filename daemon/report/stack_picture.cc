// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stack_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cut_text.h"
#include "daemon/report/escape.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

constexpr double kWidth = 960;
constexpr double kRow = 18;
constexpr double kNarrowest = 3;    // smaller boxes are omitted
constexpr double kCharacter = 6.7;  // approximate width of a character
constexpr size_t kMostBoxes = 3000;
constexpr int kMostPictureRows = 100;

struct Box {
  int node = 0;
  int row = 0;
  double left = 0, width = 0;
};

std::vector<std::vector<int>> ListChildren(const v1::StackTree& tree) {
  std::vector<std::vector<int>> children(static_cast<size_t>(tree.nodes_size()));
  for (int i = 1; i < tree.nodes_size(); ++i) {
    const int parent = tree.nodes(i).parent();
    if (parent >= 0 && parent < i) children[static_cast<size_t>(parent)].push_back(i);
  }
  return children;
}

// One of 10,000 threads gets a hundredth of the width, not a ten-thousandth.
double Weight(const v1::StackTree& tree, int node) {
  return std::sqrt(std::max(tree.nodes(node).threads(), 1));
}

std::vector<Box> LayOut(const v1::StackTree& tree) {
  const std::vector<std::vector<int>> children = ListChildren(tree);
  std::vector<Box> boxes;
  std::vector<Box> way = {{0, 0, 0, kWidth}};
  while (!way.empty() && boxes.size() < kMostBoxes) {
    const Box box = way.back();
    way.pop_back();
    boxes.push_back(box);
    const std::vector<int>& below = children[static_cast<size_t>(box.node)];
    const int ending = tree.nodes(box.node).ending();
    double all = ending > 0 ? std::sqrt(ending) : 0;
    for (const int child : below) all += Weight(tree, child);
    double left = box.left;
    for (const int child : below) {
      const double width = box.width * Weight(tree, child) / all;
      if (width >= kNarrowest && box.row + 1 < kMostPictureRows) {
        way.push_back({child, box.row + 1, left, width});
      }
      left += width;
    }
  }
  return boxes;
}

// Warm colours for few ranks, pale ones for all. Each box also names its ranks in words.
std::string BoxColour(const v1::StackTree& tree, int node) {
  const double all = std::max(tree.nodes(0).rank_count(), 1);
  const double share = std::clamp(tree.nodes(node).rank_count() / all, 0.0, 1.0);
  return absl::StrFormat("hsl(%d 75%% %d%%)", static_cast<int>(10 + 190 * share),
                         static_cast<int>(72 + 14 * share));
}

void Draw(const v1::StackTree& tree, const Box& box, std::string* svg) {
  const v1::StackTree::Node& node = tree.nodes(box.node);
  const std::string ranks = absl::StrCat("[", node.ranks(), "]");
  const std::string frame = node.frame().empty() ? "all threads" : node.frame();
  const auto room = static_cast<size_t>(std::max(0.0, (box.width - 6) / kCharacter));
  // Names the ranks where they separate from others; the tooltip has the full text.
  const bool parts = box.node == 0 || node.ranks() != tree.nodes(node.parent()).ranks();
  std::string label = parts ? absl::StrCat(ranks, " ", frame) : frame;
  label = room < 4 ? "" : CutText(label, room, "..");
  absl::StrAppendFormat(
      svg,
      "<g><title>%s\n%s %d ranks, %d threads</title><rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
      "height=\"%.0f\" fill=\"%s\"/>",
      EscapeHtml(frame), EscapeHtml(ranks), node.rank_count(), node.threads(), box.left,
      box.row * kRow, box.width, kRow, BoxColour(tree, box.node));
  if (!label.empty()) {
    absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.0f\">%s</text>", box.left + 3,
                          box.row * kRow + 13, EscapeHtml(label));
  }
  absl::StrAppend(svg, "</g>\n");
}

}  // namespace

std::string StackPicture(const v1::StackTree& tree) {
  if (tree.nodes_size() < 2) return "";
  const std::vector<Box> boxes = LayOut(tree);
  const int rows = std::max_element(boxes.begin(), boxes.end(),
                                    [](const Box& a, const Box& b) { return a.row < b.row; })
                       ->row +
                   1;
  std::string svg = absl::StrFormat(
      "<svg role=\"img\" aria-label=\"All stacks merged, the outermost frame on top; stacks.txt "
      "has the same as text\" viewBox=\"0 0 %.0f %.0f\" style=\"width:100%%;min-width:700px;"
      "font:11px ui-monospace,monospace;stroke:#fff;stroke-width:.6\">\n"
      "<style>svg text{fill:#111;stroke:none}</style>\n",
      kWidth, rows * kRow);
  for (const Box& box : boxes) Draw(tree, box, &svg);
  return svg + "</svg>\n";
}

}  // namespace rollcall
