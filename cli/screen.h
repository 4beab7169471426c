// SPDX-License-Identifier: Apache-2.0
// The whole terminal, by ncurses, whose header stays out of ours: its macros have everyday names.
#pragma once

#include <vector>

#include "cli/status_lines.h"

namespace rollcall {

// The terminal is as it was when this goes. Colours unless NO_COLOR is set or there are none. One at
// a time.
class Screen {
 public:
  enum class Key { kNone, kUp, kDown, kQuit };

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // As of now: it follows the window's size.
  int columns() const;
  int rows() const;
  void Show(const std::vector<StatusLine>& lines);
  // kNone: nothing was pressed for so long, or the size has changed.
  Key AwaitKey(int milliseconds);

 private:
  unsigned long StyleOf(LineStyle style) const;

  bool colors_ = false;
};

}  // namespace rollcall
