// channels.glsl - finds which elements of a batch-last channel are real samples and which are padding: see abi/batch_norm.abi.h
//   uint column = column_of(first + lane);
//   for (uint i = first + lane; i < end; i += lanes, column = next_column(column)) ... is_real(column, rows) ...
// The column of vec4 i is i % period4: the vec4 has samples 4 * column .. 4 * column + 3. The loop updates the column by
// addition. A division in each iteration would cost more than the rest of the iteration, and llvmpipe does not hoist divisions
// out of loops.
uint period4 = pc.period4, step_columns = gl_WorkGroupSize.x % period4;

uint column_of(uint i)
{
    return i % period4;
}

// Returns the column of the same lane's vec4 in the next iteration.
uint next_column(uint column)
{
    const uint next = column + step_columns;
    return next >= period4 ? next - period4 : next;
}

// Returns which elements of a vec4 in this column are real samples.
bvec4 is_real(uint column, uint rows)
{
    return lessThan(4 * column + uvec4(0, 1, 2, 3), uvec4(rows));
}

// Returns how many elements of the first i vec4s of a channel belong to real samples.
uint real_before(uint i, uint rows)
{
    return i / period4 * rows + min(4 * (i % period4), rows);
}
