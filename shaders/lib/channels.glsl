// channels.glsl - which vec4s of a batch-last channel hold real rows: see abi/batch_norm.abi.h
//   uint column = column_of(first + lane);
//   for (uint i = first + lane; i < end; i += lanes, column = next_column(column)) ... is_real(column, rows) ...
// The column of vec4 i is carried along: a division in each turn would cost more than the turn, and llvmpipe moves none out of a loop.
uint period4 = pc.period4, turn_columns = gl_WorkGroupSize.x % period4;

uint column_of(uint i)
{
    return i % period4;
}

// The column of the vec4 that is one turn of the work group further on.
uint next_column(uint column)
{
    const uint next = column + turn_columns;
    return next >= period4 ? next - period4 : next;
}

// Which lanes of a vec4 in this column are real.
bvec4 is_real(uint column, uint rows)
{
    return lessThan(4 * column + uvec4(0, 1, 2, 3), uvec4(rows));
}

// Real elements among the first i vec4s of a channel.
uint real_before(uint i, uint rows)
{
    return i / period4 * rows + min(4 * (i % period4), rows);
}
