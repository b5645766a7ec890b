# Adds the programs vkt_embed and vkt_bfloat, which run while the library is built. A custom command that runs one of
# these programs must depend on VKT_HOST_FILES.
#
# A cross build cannot run what it builds. So it builds these two programs with the compiler of this machine, in the
# separate build <build>/host. If VKT_HOST_TOOLS names a folder, the cross build does not build the programs, and uses
# those in this folder.
set(VKT_HOST_TOOLS "" CACHE PATH "cross build: a folder with vkt-embed and vkt-bfloat for the machine that builds")
set(VKT_HOST_FILES)
if(NOT CMAKE_CROSSCOMPILING)
  include(${CMAKE_CURRENT_LIST_DIR}/HostPrograms.cmake)
  set(VKT_HOST_FILES vkt_embed vkt_bfloat)
  return()
endif()

set(tools ${VKT_HOST_TOOLS})
if(NOT tools)
  set(tools ${PROJECT_BINARY_DIR}/host)
endif()
foreach(name embed bfloat)
  set(file ${tools}/vkt-${name}${CMAKE_HOST_EXECUTABLE_SUFFIX})
  add_executable(vkt_${name} IMPORTED GLOBAL)
  set_target_properties(vkt_${name} PROPERTIES IMPORTED_LOCATION ${file})
  list(APPEND VKT_HOST_FILES ${file})
endforeach()
if(VKT_HOST_TOOLS)
  return()
endif()
# Environment variables may name the cross compiler and its options. These variables must not reach the build for this machine.
set(clean ${CMAKE_COMMAND} -E env --unset=CC --unset=CFLAGS --unset=CPPFLAGS --unset=LDFLAGS --unset=CMAKE_TOOLCHAIN_FILE)
add_custom_command(OUTPUT ${VKT_HOST_FILES}
  COMMAND ${clean} ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/cmake/host -B ${tools} -G ${CMAKE_GENERATOR}
          -DCMAKE_BUILD_TYPE=Release -DVKT_COMPRESS_SPIRV=${VKT_COMPRESS_SPIRV}
  COMMAND ${clean} ${CMAKE_COMMAND} --build ${tools}
  DEPENDS cmake/embed.c cmake/bfloat.c cmake/HostPrograms.cmake cmake/host/CMakeLists.txt
  COMMENT "programs that run while vktrain is built" VERBATIM)
