# Functions that read shaders/kernels.def and shaders/tools.def. Shaders.cmake and the script coop.cmake include this file.
# In these functions, `root` is the root folder of the source tree.

# The options with which the shader compiler compiles every module.
set(VKT_GLSL_OPTIONS -V --quiet --target-env vulkan1.3 -DVKT_GLSL=1)

# vkt_kernel_list(root list out): sets `out` to the entries of shaders/<list>, one line each.
function(vkt_kernel_list root list out)
  file(STRINGS ${root}/shaders/${list} entries REGEX "^VKT_KERNEL\\(")
  set(${out} ${entries} PARENT_SCOPE)
endfunction()

# vkt_kernel_parse(entry): sets `id`, `file` (relative to shaders/, without .comp), `defines` (a list) and `texels`.
# Sets `coop` to TRUE if the entry has VKT_KF_COOP, and `bfloat` to TRUE if it has VKT_KF_BFLOAT. Else they are FALSE.
macro(vkt_kernel_parse entry)
  if(NOT "${entry}" MATCHES "^VKT_KERNEL\\( *([A-Z0-9_]+) *, *([a-z0-9_/]+) *, *\"([^\"]*)\" *,([^,]*),([^,]*),([^,]*),(.*)\\)$")
    message(FATAL_ERROR "malformed entry: ${entry}")
  endif()
  set(id ${CMAKE_MATCH_1})
  set(file ${CMAKE_MATCH_2})
  set(defines ${CMAKE_MATCH_3})
  set(texels ${CMAKE_MATCH_6})
  set(flags "${CMAKE_MATCH_7}")
  set(coop FALSE)
  set(bfloat FALSE)
  if(flags MATCHES VKT_KF_COOP)
    set(coop TRUE)
  endif()
  if(flags MATCHES VKT_KF_BFLOAT)
    set(bfloat TRUE)
  endif()
  string(STRIP "${texels}" texels)
  separate_arguments(defines)
endmacro()

# vkt_kernel_sources(root file out): sets `out` to shaders/<file>.comp and all files that it includes, directly or
# through other files. The paths are relative to `root` and sorted. An #include counts even if an #if around it is
# false.
function(vkt_kernel_sources root file out)
  set(found shaders/${file}.comp)
  set(open ${found})
  while(open)
    list(POP_FRONT open source)
    cmake_path(GET source PARENT_PATH folder)
    file(STRINGS ${root}/${source} lines REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1" name "${line}")
      set(included)
      foreach(base ${folder} shaders include)
        if(NOT included AND EXISTS ${root}/${base}/${name})
          set(included ${base}/${name})
        endif()
      endforeach()
      if(NOT included)
        message(FATAL_ERROR "${source} includes ${name}, which does not exist")
      endif()
      cmake_path(NORMAL_PATH included)
      if(NOT included IN_LIST found)
        list(APPEND found ${included})
        list(APPEND open ${included})
      endif()
    endforeach()
  endwhile()
  list(SORT found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# vkt_kernel_hash(root file defines out): sets `out` to a hash of everything in the tree that decides the SPIR-V of
# shaders/<file>.comp with these defines: the text of all its sources, the defines in their order, and the options of
# the compiler. If BFLOAT is defined, bfloat.c is one of the sources, because it changes the compiled module.
function(vkt_kernel_hash root file defines out)
  set(text "${VKT_GLSL_OPTIONS}\n${defines}\n")
  vkt_kernel_sources(${root} ${file} sources)
  if(defines MATCHES BFLOAT)
    list(APPEND sources cmake/bfloat.c)
  endif()
  foreach(source IN LISTS sources)
    file(SHA256 ${root}/${source} hash)
    string(APPEND text "${source} ${hash}\n")
  endforeach()
  string(SHA256 hash "${text}")
  set(${out} ${hash} PARENT_SCOPE)
endfunction()
