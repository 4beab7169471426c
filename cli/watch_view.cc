// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr int kPage = 10;            // lines
constexpr int kLeastUnrecorded = 3;  // lines

void CutLines(int columns, int rows, std::vector<StatusLine>* lines) {
  if (static_cast<int>(lines->size()) > rows) lines->resize(static_cast<size_t>(std::max(rows, 0)));
  for (StatusLine& line : *lines) line.text = CutToWidth(line.text, columns);
}

}  // namespace

void WatchView::Update(v1::StatusResponse status) {
  status_.Swap(&status);
  Sort();
}

void WatchView::Sort() { SortJobs(kJobOrders[order_], &status_); }

int WatchView::Selected() const {
  for (int i = 0; i < status_.jobs_size(); ++i) {
    if (JobName(status_.jobs(i)) == selected_) return i;
  }
  return status_.jobs().empty() ? -1 : 0;
}

void WatchView::Move(int by) {
  if (status_.jobs().empty()) return;
  const int to = std::clamp(Selected() + by, 0, status_.jobs_size() - 1);
  selected_ = JobName(status_.jobs(to));
}

void WatchView::Press(Screen::Key key) {
  const auto move = [this](int by) {
    if (is_open_) {
      scrolled_ = std::max(scrolled_ + by, 0);
    } else {
      Move(by);
    }
  };
  switch (key) {
    case Screen::Key::kUp:
      return move(-1);
    case Screen::Key::kDown:
      return move(1);
    case Screen::Key::kPageUp:
      return move(-kPage);
    case Screen::Key::kPageDown:
      return move(kPage);
    case Screen::Key::kOpen:
      if (Selected() < 0) return;
      Move(0);
      is_open_ = true;
      scrolled_ = 0;
      return;
    case Screen::Key::kBack:
      is_open_ = false;
      return;
    case Screen::Key::kSort:
      order_ = (order_ + 1) % std::size(kJobOrders);
      return Sort();
    case Screen::Key::kQuit:
    case Screen::Key::kNone:
      return;
  }
}

std::vector<StatusLine> WatchView::Lines(int columns, int rows) {
  std::vector<StatusLine> lines =
      is_open_ && Selected() >= 0 ? OpenedLines(columns, rows) : ListLines(columns, rows);
  CutLines(columns, rows, &lines);
  return lines;
}

// `most`: lines.
void WatchView::AddUnrecorded(int columns, int most, std::vector<StatusLine>* lines) const {
  std::vector<StatusLine> unrecorded = UnrecordedLines(status_, columns);
  if (static_cast<int>(unrecorded.size()) > most) {
    unrecorded.resize(static_cast<size_t>(most));
    unrecorded.back() = {"  all of them:  rollcall status", LineStyle::kSoft};
  }
  for (StatusLine& line : unrecorded) lines->push_back(std::move(line));
}

std::vector<StatusLine> WatchView::ListLines(int columns, int rows) const {
  std::vector<StatusLine> lines = {
      {absl::StrCat("rollcall: ", CountJobs(status_)), LineStyle::kTitle},
      {absl::StrCat("Enter opens a job, s sorts (by ", NameOf(kJobOrders[order_]), "), q quits"),
       LineStyle::kSoft}};
  const std::string silent = SilentDaemons(status_);
  if (!silent.empty()) lines.push_back({silent, LineStyle::kWorse});
  const int selected = Selected();
  if (selected < 0) {
    AddUnrecorded(columns, std::max(rows, kLeastUnrecorded), &lines);
    return lines;
  }
  const std::vector<StatusLine> verdict = WorstVerdict(status_, columns);
  const bool fits = static_cast<int>(verdict.size()) <= rows / 6;
  if (fits) lines.insert(lines.end(), verdict.begin(), verdict.end());
  const std::vector<StatusLine> table = JobTable(status_, columns - 2);
  lines.push_back({absl::StrCat("  ", table.front().text)});
  const int room = std::max(1, rows / 2 - 3);
  const int first = std::clamp(selected - room + 1, 0, std::max(0, status_.jobs_size() - room));
  for (int i = first; i < std::min(status_.jobs_size(), first + room); ++i) {
    const StatusLine& row = table[static_cast<size_t>(i) + 1];
    lines.push_back({absl::StrCat(i == selected ? "> " : "  ", row.text), row.style});
  }
  AddUnrecorded(columns, std::max(rows / 6, kLeastUnrecorded), &lines);
  lines.push_back({});
  const bool is_above = fits && &status_.jobs(selected) == WorstJob(status_);
  const VerdictShown shown = is_above ? VerdictShown::kAbove : VerdictShown::kHere;
  for (StatusLine& line : JobScreen(status_.jobs(selected), columns, shown)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<StatusLine> WatchView::OpenedLines(int columns, int rows) {
  const v1::JobStatus& job = status_.jobs(Selected());
  std::vector<StatusLine> whole = JobScreen(job, columns);
  const int room = std::max(rows - 2, 1);
  const int most = std::max(static_cast<int>(whole.size()) - room, 0);
  scrolled_ = std::min(scrolled_, most);
  std::vector<StatusLine> lines = {
      {absl::StrCat("rollcall: ", JobName(job), ", ", job.state()), LineStyle::kTitle},
      {absl::StrCat(
           "arrows scroll, Esc goes back, q quits",
           most == 0 ? "" : absl::StrCat("   (line ", scrolled_ + 1, " of ", whole.size(), ")")),
       LineStyle::kSoft}};
  for (size_t i = static_cast<size_t>(scrolled_); i < whole.size(); ++i) {
    lines.push_back(std::move(whole[i]));
  }
  return lines;
}

}  // namespace rollcall
