# Options of the C code on Windows. The code needs Windows 10 or newer.
target_compile_definitions(vkt_options INTERFACE _WIN32_WINNT=0x0A00 WIN32_LEAN_AND_MEAN NOMINMAX
  __USE_MINGW_ANSI_STDIO=1) # printf supports the formats of C99, also with the old C library msvcrt
if(BUILD_SHARED_LIBS)
  set(VKT_FLOOR_DEFINITIONS VKT_BUILDS_DLL=1) # makes vktrain/core.h export the functions of the API
endif()
target_compile_options(vkt_options INTERFACE -Wno-float-conversion) # mingw's macros isnan and isfinite convert double to float
