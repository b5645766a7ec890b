#!/bin/sh
# Unpacks material sets of Debian's package nexuiz-textures into a folder, as PNG files of one size. Needs apt-get, dpkg-deb,
# unzip and ImageMagick's convert. Does not need root. The textures are under the licence of the package (GPL 2 or later).
#   sh samples/ntc/materials.sh FOLDER [PIXELS]     PIXELS: side of the part that is cut out of each image (512)
set -eu
folder=${1:?want a folder}
side=${2:-512}
sets='stormkeep/brickfloor stormkeep/rock2 stormkeep/largebrick1a trak5/pipez1a trak4/wood1c trak4/concrete5a'
mkdir -p "$folder"
cd "$folder"
if ! [ -f textures.pk3 ]; then
    apt-get download nexuiz-textures
    for package in nexuiz-textures_*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/share/games/nexuiz/data/textures.pk3 > textures.pk3.part
        rm "$package"
    done
    mv textures.pk3.part textures.pk3
fi
for set in $sets; do
    name=${set##*/}
    mkdir -p "$name"
    for kind in '' _norm _gloss; do
        case $kind in '') to=albedo ;; _norm) to=normal ;; *) to=gloss ;; esac
        unzip -p textures.pk3 "textures/$set$kind.tga" > "$name/$to.tga"
        convert "$name/$to.tga" -auto-orient -alpha off -crop "${side}x$side+0+0" +repage -strip "PNG24:$name/$to.png"
        rm "$name/$to.tga"
    done
done
