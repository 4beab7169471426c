// SPDX-License-Identifier: Apache-2.0
// Environment variables of flags whose values are wrong.
#pragma once

namespace CLI {
class App;
}

namespace rollcall {

// Call it after app->parse(). Throws the CLI::ParseError of a variable that the parsing has ignored
// because of its value. CLI11 2.3 refuses such a value itself; from 2.4 on it ignores it, and the
// user would not learn that the default counts.
void RefuseWrongVariables(CLI::App* app);

}  // namespace rollcall
