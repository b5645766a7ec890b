# Writes the pages that are installed, with links that lead to installed files. The installation runs this script
# (cmake/Install.cmake).
#
#   SOURCE    the root folder of the source tree
#   OUT       folder for README.md, CHANGELOG.md and docs/*.md; its content goes to the installed folder of documents
#   INCLUDE   the installed folder of the headers, which has the folder vktrain; relative to the folder of documents
#
# A link to a header leads to the installed header. A link to a file that is not installed becomes plain text.
cmake_minimum_required(VERSION 3.25)

# Converts `target`, the target of a link in a page of this tree, for the installed page. Sets `out` to the new target, or
# to "" if `target` is a file of this tree that is not installed. `folder` is the folder of the page, "" or "docs/".
function(installed_target folder target out)
  string(REGEX REPLACE "#.*" "" path "${target}")
  set(${out} "${target}" PARENT_SCOPE)
  if(path STREQUAL "" OR target MATCHES "^[a-z]+:")
    return()
  endif()
  cmake_path(SET path NORMALIZE "${folder}${path}")
  if(NOT EXISTS ${SOURCE}/${path}) # the text looks like a link, but is code
    return()
  endif()
  set(samples "samples/((train|embed)_minimal\\.c|custom_loss\\.(c|comp))")
  if(path MATCHES "^(README\\.md|CHANGELOG\\.md|LICENSE|${samples}|docs/(images/)?[^/]*\\.(md|json|png|svg))$")
    return()
  endif()
  set(${out} "" PARENT_SCOPE)
  if(path MATCHES "^include/(vktrain/.*)$")
    set(up "")
    if(folder)
      set(up "../")
    endif()
    set(${out} "${up}${INCLUDE}/${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

function(write_page folder name)
  file(READ ${SOURCE}/${folder}${name} rest)
  set(text "")
  while(TRUE)
    string(REGEX MATCH "\\]\\(([^) ]*)\\)" link "${rest}")
    if(link STREQUAL "")
      break()
    endif()
    set(target "${CMAKE_MATCH_1}")
    string(FIND "${rest}" "${link}" at)
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(LENGTH "${link}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(APPEND text "${before}")
    installed_target("${folder}" "${target}" now)
    if(now)
      string(APPEND text "](${now})")
    else()
      string(FIND "${text}" "[" open REVERSE)
      math(EXPR behind "${open} + 1")
      string(SUBSTRING "${text}" 0 ${open} before)
      string(SUBSTRING "${text}" ${behind} -1 words)
      set(text "${before}${words}")
    endif()
  endwhile()
  file(WRITE ${OUT}/${folder}${name} "${text}${rest}")
endfunction()

file(GLOB pages RELATIVE ${SOURCE}/docs ${SOURCE}/docs/*.md)
foreach(page IN LISTS pages)
  write_page(docs/ ${page})
endforeach()
write_page("" README.md)
write_page("" CHANGELOG.md)
