-- SPDX-License-Identifier: Apache-2.0
-- For Lmod: module use /usr/share/rollcall/modulefiles; module load rollcall
help([[
Rollcall finds out which rank is at fault when a training job hangs.
The module preloads its library into what you start. A job without it: ROLLCALL=0.]])
whatis("Name: Rollcall")
whatis("Description: names the rank at fault when a training job hangs")

local library = "/usr/lib/rollcall/librollcall.so"
if isFile(library) then
  prepend_path("LD_PRELOAD", library)
else
  LmodMessage("rollcall: this host has no " .. library)
end
