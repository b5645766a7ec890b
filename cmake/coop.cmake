# Checks or writes the shipped modules of cooperative matrices. An entry is a line of shaders/kernels.def or
# shaders/tools.def. For each entry with the flag VKT_KF_COOP, shaders/coop/<ID>.hex has the SPIR-V. A build uses these
# files if its shader compiler does not support cooperative matrices (Shaders.cmake). Each file also has a hash of the
# sources (vkt_kernel_hash in Kernels.cmake) and a hash of the SPIR-V. A build that uses the files checks these hashes
# first.
#
#   cmake -P cmake/coop.cmake                    checks that each file belongs to the sources of this tree
#   cmake --build build --target coop_modules    compiles the entries, and writes all files again
#
# More variables of this script. The build and the test shaders/fresh set some of them:
#
#   SPV=DIR         the folder of the freshly compiled modules <ID>.spv
#   EMBED=PROGRAM   the program that is built from cmake/embed.c
#   COMPILER=PATH   the shader compiler that made the modules in SPV
#   WRITE=ON        writes the files from the modules in SPV; without WRITE, the script compares the files with these modules
#   STAMP=FILE      the script writes this file if it finds no fault
#   ROOT=DIR        the root folder of the source tree to check; default: the tree of this script
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/Kernels.cmake)
if(NOT ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ROOT)
endif()
set(shipped ${ROOT}/shaders/coop)
set(advice "Write the files again with a shader compiler that supports GL_KHR_cooperative_matrix. Debian 13 has one, and on Debian 12:
  sh tests/drivers.sh .drivers && cmake -B build -DVKT_GLSLANG_COOP=$PWD/.drivers/glslang
  cmake --build build --target coop_modules")

set(version)
if(COMPILER)
  execute_process(COMMAND ${COMPILER} --version OUTPUT_VARIABLE version)
  string(REGEX REPLACE "\n.*$" "" version "${version}")
endif()

set(faults)  # one text for each wrong file
set(wanted)  # all files that should exist
set(skipped) # ids of the modules that another version of the compiler made

# Sets `out` to the text of a module's .hex file: a head of comments, and then the words of the SPIR-V.
function(describe id file defines hash out)
  execute_process(COMMAND ${EMBED} -x ${SPV}/${id}.spv OUTPUT_VARIABLE words RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${SPV}/${id}.spv cannot be read")
  endif()
  list(JOIN defines " " text)
  string(SHA256 digest "${words}")
  set(${out} "# ${id}: the SPIR-V of shaders/${file}.comp. cmake/coop.cmake has written it.
# defines: ${text}
# sources: ${hash}
# compiler: ${version}
# words: ${digest}
${words}" PARENT_SCOPE)
endfunction()

# `text` is the text of a .hex file. Sets `out` to TRUE if the line "# words" has the hash of the words below it.
function(is_whole text out)
  string(REGEX MATCH "\n# words: ([0-9a-f]+)\n" line "${text}")
  set(wanted "${CMAKE_MATCH_1}")
  string(FIND "${text}" "${line}" at)
  string(LENGTH "${line}" length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${text}" ${at} -1 words)
  string(SHA256 digest "${words}")
  if(line AND digest STREQUAL wanted)
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

function(handle id file defines)
  set(path ${shipped}/${id}.hex)
  list(APPEND wanted ${path})
  set(wanted ${wanted} PARENT_SCOPE)
  vkt_kernel_hash(${ROOT} ${file} "${defines}" hash)
  if(SPV)
    describe(${id} ${file} "${defines}" ${hash} fresh)
  endif()
  if(WRITE)
    file(WRITE ${path} "${fresh}")
    return()
  endif()
  set(old)
  if(EXISTS ${path})
    file(READ ${path} old)
  endif()
  string(FIND "${old}" "\n# compiler: ${version}\n" compiler_at)
  is_whole("${old}" whole)
  if(NOT old)
    list(APPEND faults "${path} is missing")
  elseif(NOT old MATCHES "\n# sources: ${hash}\n")
    list(APPEND faults "${path} was made from other sources than those of this tree")
  elseif(NOT whole)
    list(APPEND faults "${path} has other words than those that were written")
  elseif(SPV AND compiler_at EQUAL -1)
    list(APPEND skipped ${id})
  elseif(SPV AND NOT old STREQUAL fresh)
    list(APPEND faults "${path} is not what the compiler makes of its sources")
  endif()
  set(faults ${faults} PARENT_SCOPE)
  set(skipped ${skipped} PARENT_SCOPE)
endfunction()

foreach(list kernels.def tools.def)
  vkt_kernel_list(${ROOT} ${list} entries)
  foreach(entry IN LISTS entries)
    vkt_kernel_parse("${entry}")
    if(coop)
      handle(${id} ${file} "${defines}")
      if(NOT texels STREQUAL "0")
        list(APPEND defines VKT_TEXEL=1)
        handle(${id}.texel ${file} "${defines}")
      endif()
    endif()
  endforeach()
endforeach()
file(GLOB present ${shipped}/*)
foreach(path IN LISTS present)
  if(path IN_LIST wanted)
    continue()
  elseif(WRITE)
    file(REMOVE ${path})
  else()
    list(APPEND faults "${path} belongs to no entry with VKT_KF_COOP")
  endif()
endforeach()

if(faults)
  list(JOIN faults "\n  " text)
  message(FATAL_ERROR "The shipped modules of cooperative matrices are wrong:\n  ${text}\n${advice}\n")
endif()
if(skipped)
  list(JOIN skipped ", " text)
  message(STATUS "SKIPPED: shipped modules were not compared, because another version than ${version} made them: ${text}")
endif()
if(STAMP)
  file(TOUCH ${STAMP})
endif()
list(LENGTH wanted n)
message(STATUS "${n} modules of cooperative matrices: right")
