# Builds for 64-bit ARM Linux on another machine (Debian, Ubuntu: apt install gcc-aarch64-linux-gnu):
#   cmake -S . -B build-arm64 --toolchain cmake/toolchains/aarch64-linux-gnu.cmake
# The target's libraries come from packages of the architecture arm64. docs/platforms.md says how to get them.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# VKT_ARM64_ROOT is a folder with unpacked packages of arm64. Empty: the packages are installed on this machine.
set(VKT_ARM64_ROOT "" CACHE PATH "a folder with libraries and headers for arm64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES VKT_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER) # the programs that the build runs are on this machine
if(VKT_ARM64_ROOT) # the folder must also have libc6-dev: headers and libraries of the C library come from this folder
  set(CMAKE_SYSROOT ${VKT_ARM64_ROOT})
  foreach(kind LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
  endforeach()
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${VKT_ARM64_ROOT})
endif()
set(ENV{PKG_CONFIG_LIBDIR} ${VKT_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${VKT_ARM64_ROOT}/usr/share/pkgconfig)
