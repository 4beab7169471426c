// SPDX-License-Identifier: Apache-2.0
// What `rollcall watch` shows: a list of the jobs, those that are not recorded last, with the
// selected one below it, or one job on the whole screen. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/job_table.h"
#include "cli/screen.h"
#include "cli/status_lines.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

class WatchView {
 public:
  // Shows a new answer of the daemon. The selection stays on its job; before the user has moved it,
  // on the first one.
  void Update(v1::StatusResponse status);

  void Press(Screen::Key key);

  // No line is longer than `columns`, and there are at most `rows`. An opened job scrolls no
  // further than to its end.
  std::vector<StatusLine> Lines(int columns, int rows);

 private:
  void Sort();
  void Move(int by);
  int Selected() const;  // index into status_.jobs(); -1 if there is no job
  std::vector<StatusLine> ListLines(int columns, int rows) const;
  void AddUnrecorded(int columns, int most, std::vector<StatusLine>* lines) const;
  std::vector<StatusLine> OpenedLines(int columns, int rows);

  v1::StatusResponse status_;
  size_t order_ = 0;      // index into kJobOrders
  std::string selected_;  // JobName(); empty means the first one
  bool is_open_ = false;
  int scrolled_ = 0;  // lines of the opened job above the screen
};

}  // namespace rollcall
