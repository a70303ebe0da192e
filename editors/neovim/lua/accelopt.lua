-- AccelOpt in Neovim 0.11 or newer: the server, lenses that stay fresh, its line for the status line, and the review of a
-- checked version as a diff in a split, with its evidence and the decisions in the window bar.
local M = {}

local status = { state = 'stopped', message = '' }

local function client(buffer)
  return vim.lsp.get_clients({ name = 'accelopt', bufnr = buffer or 0 })[1]
end

local function command(name, argument, answered)
  local server = client()
  if not server then
    vim.notify('AccelOpt does not run for this buffer.', vim.log.levels.WARN)
    return
  end
  server:request('workspace/executeCommand', { command = 'accelopt.server.' .. name, arguments = { argument } },
    function(problem, answer)
      if problem then
        vim.notify(problem.message, vim.log.levels.WARN)
      elseif answered then
        answered(answer or {})
      end
    end)
end

-- What a person decides about the version in the window: the key, its name, and what happens.
local DECISIONS = {
  { 'ga', 'accept', { apply = true } },
  { 'gr', 'reject', {} },
  { 'ge', 'explain', {} },
}

local function close(window, file)
  if vim.api.nvim_win_is_valid(window) and #vim.api.nvim_list_wins() > 1 then
    vim.api.nvim_win_close(window, true)
  end
  vim.api.nvim_win_call(vim.fn.bufwinid(file), function() vim.cmd.diffoff() end)
end

-- Show a version (`{ id, uri, title }`) beside its file.
function M.show(version)
  local file = vim.uri_to_bufnr(version.uri)
  local address = ('accelopt-candidate:%s?id=%s'):format(vim.uri_to_fname(version.uri), version.id)
  local server = client(file)
  if not server then return end
  server:request('accelopt/candidate', { uri = address }, function(problem, answer)
    if problem then
      vim.notify(problem.message, vim.log.levels.WARN)
      return
    end
    local shown = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(shown, 0, -1, false, vim.split(answer.text:gsub('\n$', ''), '\n'))
    vim.bo[shown].filetype, vim.bo[shown].modifiable, vim.bo[shown].bufhidden = 'python', false, 'wipe'
    vim.api.nvim_set_current_buf(file)
    vim.cmd.diffthis()
    local window = vim.api.nvim_open_win(shown, true, { split = 'right' })
    vim.cmd.diffthis()
    vim.wo[window].winbar = (version.title or ''):gsub('%%', '%%%%') .. '  ga accept  gr reject  ge explain  q close'
    local function leave() close(window, file) end
    for _, decision in ipairs(DECISIONS) do
      local key, name, more = unpack(decision)
      vim.keymap.set('n', key, function()
        if name ~= 'explain' then leave() end
        vim.api.nvim_buf_call(file, function()
          command(name, vim.tbl_extend('force', { id = version.id, uri = version.uri }, more))
        end)
      end, { buffer = shown, desc = 'AccelOpt: ' .. name .. ' this version' })
    end
    vim.keymap.set('n', 'q', leave, { buffer = shown, desc = 'AccelOpt: close the diff' })
  end, file)
end

-- Choose one of the checked versions of the kernel at the cursor (or of `where`), best first, and show it.
function M.review(where)
  where = where or { uri = vim.uri_from_bufnr(0), line = vim.fn.line('.') }
  command('versions', where, function(answer)
    local versions = answer.versions or {}
    if #versions == 0 then
      vim.notify('No faster version of this kernel is known; optimize it first.')
    elseif #versions == 1 then
      M.show(versions[1])
    else
      local function title(version) return ('%s  %s  %s'):format(version.speedup, version.summary, version.origin) end
      vim.ui.select(versions, { prompt = 'Checked versions, best first', format_item = title }, function(version)
        if version then M.show(version) end
      end)
    end
  end)
end

-- One line of what the server does, for a status line.
function M.status()
  if status.state == 'stopped' then return '' end
  return status.state == 'idle' and 'AccelOpt' or 'AccelOpt: ' .. status.message
end

-- Start the server for Python files; `options` are laid over the configuration of `vim.lsp.config`.
function M.setup(options)
  local at_cursor = function(name)
    return function() command(name, { uri = vim.uri_from_bufnr(0), line = vim.fn.line('.') }) end
  end
  vim.lsp.config('accelopt', vim.tbl_deep_extend('force', {
    cmd = { 'accelopt-lsp' },
    filetypes = { 'python' },
    root_markers = { 'accelopt.toml', 'pyproject.toml', '.git' },
    init_options = { status = true, clientCommands = { 'accelopt.showSuggestion', 'accelopt.showVersions' } },
    commands = {
      ['accelopt.showSuggestion'] = function(chosen) M.show(chosen.arguments[1]) end,
      ['accelopt.showVersions'] = function(chosen) M.review(chosen.arguments[1]) end,
    },
    handlers = {
      ['accelopt/status'] = function(_, told)
        status = told
        vim.cmd.redrawstatus()
      end,
    },
  }, options or {}))
  vim.lsp.enable('accelopt')
  vim.lsp.inlay_hint.enable(true)
  local group = vim.api.nvim_create_augroup('accelopt', {})
  if vim.lsp.codelens.enable then -- from 0.12 on, where a server can have lenses fetched again
    vim.lsp.codelens.enable(true)
  else
    vim.api.nvim_create_autocmd({ 'BufEnter', 'BufWritePost', 'InsertLeave', 'CursorHold', 'LspProgress' }, {
      group = group,
      callback = function(event)
        if client(event.buf) then vim.lsp.codelens.refresh({ bufnr = event.buf }) end
      end,
    })
  end
  vim.api.nvim_create_user_command('AccelOptReview', function() M.review() end, { desc = 'Review a checked version' })
  vim.api.nvim_create_user_command('AccelOptOptimize', at_cursor('optimize'), { desc = 'Search for faster versions' })
  vim.api.nvim_create_user_command('AccelOptCompare', at_cursor('compare'), { desc = 'Compare with an earlier version' })
  vim.api.nvim_create_user_command('AccelOptCancel', function() command('cancel', {}) end, { desc = 'Cancel what runs' })
end

return M
