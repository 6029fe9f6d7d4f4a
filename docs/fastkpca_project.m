function score = fastkpca_project(model, X)
% Scores of new rows X (m x d) under a model that fastkpca.export_mat wrote:
%
%   model = load('model.mat');
%   score = fastkpca_project(model, X);      % m x c, the columns of X as in training
%
% For kernel "precomputed", X is the m x N matrix between new and training rows.
% Works in MATLAB R2016b and newer, and in GNU Octave.
  p = model.projector;
  X = double(X);
  if strcmp(model.kernel.name, 'precomputed')
    d = numel(p.column_means);
  else
    d = numel(model.shift);
  end
  if size(X, 2) ~= d
    error('fastkpca_project: X has %d columns, the model needs %d; rows are observations', size(X, 2), d);
  end
  bad = find(~all(isfinite(X), 2), 1);      % max(NaN, 0) is 0: without this NaN would pass for a distance of 0
  if ~isempty(bad)
    error('fastkpca_project: X contains NaN or infinity (first in row %d); drop or impute such rows', bad);
  end
  if ~strcmp(model.kernel.name, 'precomputed')
    X = X - model.shift;
    if isfield(model, 'scale')              % of a model with standardize=True
      X = X ./ model.scale;
    end
  end
  if strcmp(p.kind, 'samples')
    if strcmp(model.kernel.name, 'precomputed')
      K = X;
    else
      K = gram(model.kernel, X, p.X);
    end
    score = (K - p.column_means) * p.coeff;
  else
    score = (features(p.map, X, model.kernel) - p.mean) * p.axes;
  end
end

function K = gram(kernel, X, Y)
  switch kernel.name
    case 'gaussian'
      D = max(sum(X.^2, 2) + sum(Y.^2, 2)' - 2 * X * Y', 0);
      K = exp(-D / (2 * kernel.parameters.sigma^2));
    case 'linear'
      K = X * Y';
    case 'polynomial'
      q = kernel.parameters;
      K = (q.scale * X * Y' + q.offset) .^ q.degree;
    case 'tanh'
      q = kernel.parameters;
      K = tanh(q.scale * X * Y' + q.offset);
    case 'scaled'
      K = kernel.factor * gram(kernel.parts{1}, X, Y);
    case {'sum', 'product'}
      K = gram(kernel.parts{1}, X, Y);
      for i = 2:numel(kernel.parts)
        if strcmp(kernel.name, 'sum')
          K = K + gram(kernel.parts{i}, X, Y);
        else
          K = K .* gram(kernel.parts{i}, X, Y);
        end
      end
    otherwise
      error('fastkpca_project: add a case for the kernel "%s" to the function gram', kernel.name);
  end
end

function Phi = features(map, X, kernel)
  n = size(X, 1);
  switch map.kind
    case 'monomials'                        % prod_i z_i^a_i / sqrt(a_i!), weighted, perhaps times exp(-|z|^2 / 2)
      Z = (X - map.centre) * map.rotation;
      Phi = repmat(map.weights, n, 1);
      for i = 1:size(Z, 2)
        a = map.exponents(:, i)';
        z = Z(:, i);
        h = exp(log(max(abs(z), realmin)) * a - gammaln(a + 1) / 2 - map.gaussian * z.^2 / 2);
        h(z < 0, mod(a, 2) == 1) = -h(z < 0, mod(a, 2) == 1);
        Phi = Phi .* h;
      end
    case 'pivots'
      Phi = (map.factor \ gram(kernel, map.pivots, X))';
    case 'waves'
      Phi = repmat(sqrt(map.weights), n, 1);
      for i = 1:size(X, 2)                  % a cosine of each axis, or a sine where the mode is negative
        T = 2 * pi * ((X(:, i) - map.centre(i)) / map.period(i)) * map.modes(:, i)';
        h = cos(T);
        sines = map.modes(:, i)' < 0;
        h(:, sines) = -sin(T(:, sines));
        Phi = Phi .* h;
      end
      Phi(any(X < map.low | X > map.high, 2), :) = 0;
    case 'scaled'
      Phi = sqrt(map.factor) * features(map.parts{1}, X, kernel);
    case 'sum'
      Phi = [];
      for i = 1:numel(map.parts)
        Phi = [Phi, features(map.parts{i}, X, kernel)];  %#ok<AGROW>
      end
    case 'product'
      A = features(map.parts{1}, X, kernel);
      B = features(map.parts{2}, X, kernel);
      Phi = zeros(n, size(A, 2) * size(B, 2));
      for i = 1:n
        Phi(i, :) = kron(A(i, :), B(i, :));
      end
  end
end
