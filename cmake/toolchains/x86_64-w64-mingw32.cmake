# Builds for 64-bit Windows on another system (Debian, Ubuntu: apt install gcc-mingw-w64-x86-64 libz-mingw-w64-dev):
#   cmake -S . -B build-windows --toolchain cmake/toolchains/x86_64-w64-mingw32.cmake
# Debian does not have all libraries for Windows. docs/platforms.md has the options that switch off the missing ones.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)

# Debian has the compiler twice. The variant "posix" has POSIX threads, which the engine uses.
find_program(CMAKE_C_COMPILER NAMES x86_64-w64-mingw32-gcc-posix x86_64-w64-mingw32-gcc REQUIRED)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)

# VKT_WINDOWS_ROOT lists more folders with libraries for Windows.
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32 ${VKT_WINDOWS_ROOT})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES VKT_WINDOWS_ROOT)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER) # the programs that the build runs are on this machine
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# With -static, programs and DLLs contain the compiler's library and winpthreads. So they need no DLL of the compiler.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -static)
endforeach()
set(ZLIB_USE_STATIC_LIBS ON)
