// SPDX-License-Identifier: Apache-2.0
// Draws on the whole terminal with ncurses. Only screen.cc includes the header of ncurses, because
// its macros have everyday names.
#pragma once

#include <vector>

#include "cli/status_lines.h"

namespace rollcall {

// The destructor restores the terminal. Uses colours if the terminal has them and NO_COLOR is not
// set. Only one Screen may exist at a time.
class Screen {
 public:
  enum class Key { kNone, kUp, kDown, kPageUp, kPageDown, kOpen, kBack, kSort, kQuit };

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Returns the current size of the window.
  int columns() const;
  int rows() const;
  void Show(const std::vector<StatusLine>& lines);
  // Waits for a key. kNone: the time is over without a key, or the size has changed.
  Key AwaitKey(int milliseconds);

 private:
  unsigned long Attributes(LineStyle style) const;

  bool colors_ = false;
};

}  // namespace rollcall
