// Lua 5.4: an interpreter that runs a script of its own.
//# flags: -std=gnu99 -DLUA_USE_POSIX -w
//# flags: -I%sources(lua-src)/lua-5.4.9
//# sources: %sources(lua-src)/lua-5.4.9/*.c
//# link: %objects -lm
//# modules: 33
//--- main.c
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char script[] =
    "local words = {}\n"
    "for word in ('the quick brown fox jumps over the lazy dog'):gmatch('%a+') do words[#words + 1] = word end\n"
    "table.sort(words, function(a, b) return #a == #b and a < b or #a < #b end)\n"
    "print(table.concat(words, ' '))\n"
    "local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end\n"
    "print(fib(20), math.type(3 // 2), string.format('%5.2f', math.pi))\n"
    "print(select(2, pcall(error, {code = 7})).code)\n"
    "print(coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)())\n"
    "print(select('#', string.unpack('<i4i2', string.pack('<i4i2', 70000, -3))))\n";

int main(void) {
  lua_State *state = luaL_newstate();
  luaL_openlibs(state);
  if (luaL_loadstring(state, script) || lua_pcall(state, 0, 0, 0)) {
    lua_writestringerror("%s\n", lua_tostring(state, -1));
    return 1;
  }
  lua_close(state);
  return 0;
}
