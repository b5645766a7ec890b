# Options for libraries that vktrain can be built without. With VKT_WITH_<LIBRARY>=OFF the build neither looks for the
# library nor links it. Functions that need the library return VKT_E_UNSUPPORTED, and the message names the option.
#
# VKT_NEEDS_<LIBRARY> lists the files of engine/ that need the library. With OFF, the build leaves these files out, and
# compiles the files of VKT_INSTEAD_<LIBRARY>. The files of VKT_INSTEAD_<LIBRARY> define each function of the left-out
# files that is public, or that a file of this build calls.
option(VKT_WITH_JPEG "images in JPEG (libjpeg)" ON)
option(VKT_WITH_PNG "images in PNG (libpng)" ON)
option(VKT_WITH_CAIRO "figures: plots of a run, of learning rates, of a confusion matrix (cairo)" ON)
option(VKT_WITH_ZLIB "checkpoints, data files in gzip, and compressed SPIR-V in the library (zlib)" ON)
option(VKT_WITH_JANSSON "safetensors and checkpoints; settings, results, scores, cards and columns as JSON (jansson)" ON)
option(VKT_WITH_PCRE2 "the tokenizers of language models (pcre2)" ON)
set(VKT_LIBRARIES ZLIB JPEG PNG JANSSON CAIRO PCRE2)

set(VKT_NEEDS_JPEG data/jpeg.c)
set(VKT_NEEDS_PNG data/png.c data/png_encode.c)
set(VKT_NEEDS_CAIRO train/figure.c train/plot.c train/rates.c train/confusion_figure.c)
set(VKT_NEEDS_ZLIB data/gz_file.c io/checkpoint.c)
set(VKT_NEEDS_JANSSON io/safetensors.c io/safetensors_write.c io/members.c io/shards.c train/results.c train/scores_json.c train/card.c train/columns_json.c
  lm/peft.c lm/peft_config.c)
set(VKT_NEEDS_PCRE2 data/pretoken.c)
set(VKT_INSTEAD_JPEG data/without/jpeg.c)
set(VKT_INSTEAD_PNG data/without/png.c data/without/png_encode.c)
set(VKT_INSTEAD_CAIRO train/without/plot.c)
set(VKT_INSTEAD_ZLIB data/without/gz_file.c io/without/checkpoint.c)
set(VKT_INSTEAD_JANSSON io/without/safetensors.c io/without/shards.c train/without/results.c lm/without/peft.c)
set(VKT_INSTEAD_PCRE2 data/without/pretoken.c)

# VKT_TARGET_<LIBRARY> is the target that is linked. VKT_PC_<LIBRARY> is the name of the library for pkg-config.
set(VKT_TARGET_JPEG JPEG::JPEG)
set(VKT_TARGET_PNG PNG::PNG)
set(VKT_TARGET_CAIRO PkgConfig::CAIRO)
set(VKT_TARGET_ZLIB ZLIB::ZLIB)
set(VKT_TARGET_JANSSON PkgConfig::JANSSON)
set(VKT_TARGET_PCRE2 PkgConfig::PCRE2)
set(VKT_PC_JPEG libjpeg)
set(VKT_PC_PNG libpng)
set(VKT_PC_CAIRO cairo)
set(VKT_PC_ZLIB zlib)
set(VKT_PC_JANSSON jansson)
set(VKT_PC_PCRE2 libpcre2-8)

# VKT_LINK_<LIBRARY> is the target, or empty if the library is switched off. VKT_WITHOUT lists the libraries that are
# switched off.
set(VKT_WITHOUT)
foreach(library IN LISTS VKT_LIBRARIES)
  set(VKT_LINK_${library})
  if(NOT VKT_WITH_${library})
    list(APPEND VKT_WITHOUT ${library})
    continue()
  endif()
  if(VKT_TARGET_${library} MATCHES "^PkgConfig::")
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(${library} REQUIRED IMPORTED_TARGET ${VKT_PC_${library}})
  else()
    find_package(${library} REQUIRED)
  endif()
  set(VKT_LINK_${library} ${VKT_TARGET_${library}})
endforeach()

# vkt_leave_out(list): removes from a list of files those that this build does not compile.
function(vkt_leave_out list)
  set(files ${${list}})
  foreach(library IN LISTS VKT_LIBRARIES)
    set(omitted ${VKT_INSTEAD_${library}})
    if(NOT VKT_WITH_${library})
      set(omitted ${VKT_NEEDS_${library}})
    endif()
    list(TRANSFORM omitted PREPEND ${PROJECT_SOURCE_DIR}/engine/)
    list(REMOVE_ITEM files ${omitted})
  endforeach()
  set(${list} ${files} PARENT_SCOPE)
endfunction()
