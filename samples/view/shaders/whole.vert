// whole.vert - one triangle over the whole viewport; at: (0,0) in its upper left corner, (1,1) in the lower right one.
#version 460
layout(location = 0) out vec2 at;

void main()
{
    at = vec2(gl_VertexIndex << 1 & 2, gl_VertexIndex & 2);
    gl_Position = vec4(2 * at - 1, 0, 1);
}
