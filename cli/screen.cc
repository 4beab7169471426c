// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

#include <clocale>
#include <cstdlib>

#define NCURSES_NOMACROS 1
#include <ncurses.h>

namespace rollcall {
namespace {

enum Pair : short { kGreen = 1, kYellow, kRed };

constexpr int kEscape = 27;
constexpr int kEscapeMs = 50;  // after this time an escape is a key of its own

}  // namespace

Screen::Screen() {
  setlocale(LC_ALL, "");
  initscr();
  cbreak();
  noecho();
  keypad(stdscr, true);
  set_escdelay(kEscapeMs);
  curs_set(0);
  const char* no_color = std::getenv("NO_COLOR");
  colors_ = (no_color == nullptr || *no_color == '\0') && has_colors();
  if (!colors_) return;
  start_color();
  use_default_colors();
  init_pair(kGreen, COLOR_GREEN, -1);
  init_pair(kYellow, COLOR_YELLOW, -1);
  init_pair(kRed, COLOR_RED, -1);
}

Screen::~Screen() { endwin(); }

int Screen::columns() const { return COLS; }
int Screen::rows() const { return LINES; }

void Screen::Show(const std::vector<StatusLine>& lines) {
  erase();
  int row = 0;
  for (const StatusLine& line : lines) {
    attrset(static_cast<int>(Attributes(line.style)));
    mvaddstr(row++, 0, line.text.c_str());
  }
  attrset(A_NORMAL);
  refresh();
}

Screen::Key Screen::AwaitKey(int milliseconds) {
  timeout(milliseconds);
  switch (getch()) {
    case 'q':
    case 'Q':
      return Key::kQuit;
    case KEY_DOWN:
    case 'j':
      return Key::kDown;
    case KEY_UP:
    case 'k':
      return Key::kUp;
    case KEY_NPAGE:
    case ' ':
      return Key::kPageDown;
    case KEY_PPAGE:
      return Key::kPageUp;
    case KEY_ENTER:
    case '\n':
    case '\r':
      return Key::kOpen;
    case kEscape:
    case KEY_BACKSPACE:
    case KEY_LEFT:
      return Key::kBack;
    case 's':
      return Key::kSort;
    default:
      return Key::kNone;
  }
}

unsigned long Screen::Attributes(LineStyle style) const {
  switch (style) {
    case LineStyle::kTitle:
      return A_REVERSE;
    case LineStyle::kGood:
      return colors_ ? COLOR_PAIR(kGreen) : A_NORMAL;
    case LineStyle::kWorse:
      return colors_ ? COLOR_PAIR(kYellow) : A_BOLD;
    case LineStyle::kBad:
      return (colors_ ? COLOR_PAIR(kRed) : A_NORMAL) | A_BOLD;
    case LineStyle::kSoft:
      return A_DIM;
    case LineStyle::kPlain:
      break;
  }
  return A_NORMAL;
}

}  // namespace rollcall
